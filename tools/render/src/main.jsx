// A dashboard as Grafana draws it: title, variables, rows, and panels in the grid.
import React, { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { Panel, theme } from './panels.jsx';
import { dashboard, problems, resolveVariables, width } from './queries.js';

const [COLUMNS, CELL, GAP] = [24, 30, 8]; // Grafana's grid: columns, and pixels
const panels = dashboard.panels.filter((panel) => panel.type !== 'row');
const column = (width - 16) / COLUMNS;
window.drawn = 0;
window.panels = panels.length;
window.bottom = 84 + Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * (CELL + GAP);

class Guard extends React.Component {
  state = {};
  static getDerivedStateFromError(error) { return { error }; }
  componentDidCatch(error) { problems.push(`"${this.props.panel.title}": ${error.message}`); }
  render() { return this.state.error ? String(this.state.error.message) : this.props.children; }
}

function Placed({ panel }) {
  const { x, y, w, h } = panel.gridPos;
  const box = { position: 'absolute', left: x * column, top: y * (CELL + GAP) };
  if (panel.type === 'row') return <div style={{ ...box, paddingTop: 10, fontWeight: 500 }}>⌄ {panel.title}</div>;
  return (
    <div style={box}>
      <Guard panel={panel}>
        <Panel panel={panel} width={w * column - GAP} height={h * (CELL + GAP) - GAP} />
      </Guard>
    </div>
  );
}

function Dashboard() {
  const [ready, set] = useState(false);
  useEffect(() => {
    resolveVariables().catch((error) => problems.push(`variables: ${error.message}`)).finally(() => set(true));
  }, []);
  const shown = dashboard.templating.list.filter((variable) => variable.hide !== 2);
  const chip = { marginRight: 12, padding: '3px 8px', background: theme.colors.background.secondary };
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles isBodyScrolling />
      <div style={{ padding: 8 }}>
        <h3>{dashboard.title}</h3>
        <div style={{ marginBottom: 8, fontSize: 12 }}>
          {shown.map(({ name, label, type }) => (
            <span key={name} style={chip}><b>{label}</b> {type === 'datasource' ? 'Prometheus' : 'All'}</span>
          ))}
        </div>
        <div style={{ position: 'relative' }}>
          {ready && dashboard.panels.map((panel) => <Placed key={panel.id} panel={panel} />)}
        </div>
      </div>
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById('root')).render(<Dashboard />);
