// One panel: its data through Grafana's transformations and field configuration, and the component that draws it.
import React, { useEffect, useState } from 'react';
import {
  applyFieldOverrides, cacheFieldDisplayNames, createTheme, dateTime, FieldColorModeId, fieldColorModeRegistry,
  getDisplayValueAlignmentFactors, getFieldDisplayValues, getValueFormats, LoadingState, Registry, standardFieldConfigEditorRegistry,
  standardTransformers, standardTransformersRegistry, transformDataFrame, VizOrientation,
} from '@grafana/data';
import { BarGauge, BigValue, PanelChrome, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { chosen, from, problems, run, to } from './queries.js';

export const theme = createTheme({ colors: { mode: 'dark' } });
const UNITS = new Set(getValueFormats().flatMap((category) => category.submenu.map((format) => format.value)));

// Grafana's core fills these two registries at its start.
const once = new Map(Object.values(standardTransformers).filter((one) => one?.id).map((one) => [one.id, one]));
standardTransformersRegistry.setInit(() =>
  [...once.values()].map((one) => ({ id: one.id, name: one.name, transformation: one, editor: () => null })));
const STANDARD = ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds', 'mappings', 'noValue', 'links'];
const CUSTOM = [
  'drawStyle', 'lineInterpolation', 'lineWidth', 'fillOpacity', 'showPoints', 'spanNulls', 'stacking', 'lineStyle',
  'thresholdsStyle', 'pointSize', 'axisSoftMax', 'align', 'cellOptions', 'width', 'minWidth', 'inspect',
];
const editor = (id, more) => ({
  id, path: id, name: id, description: '', settings: {}, process: (value) => value, shouldApply: () => true,
  getItemsCount: () => 0, editor: () => null, override: () => null, ...more,
});
standardFieldConfigEditorRegistry.setInit(() => STANDARD.map((id) => editor(id)));
const properties = new Registry(() => [
  ...STANDARD.map((id) => editor(id)),
  ...CUSTOM.map((id) => editor(id, { id: `custom.${id}`, isCustom: true })),
]);

const complain = (panel, what) => problems.push(`"${panel.title}": ${what}`);

async function load(panel, pixels) {
  let frames = (await Promise.all(panel.targets.map((target) => run(target, panel, pixels)))).flat();
  for (const transformation of panel.transformations ?? []) {
    if (!standardTransformersRegistry.getIfExists(transformation.id)) complain(panel, `unknown ${transformation.id}`);
    frames = await new Promise((next, error) => transformDataFrame([transformation], frames).subscribe({ next, error }));
  }
  const data = applyFieldOverrides({
    data: frames, fieldConfig: configuration(panel), replaceVariables: replaced, theme, timeZone: 'utc',
    fieldConfigRegistry: properties,
  });
  cacheFieldDisplayNames(data);
  return data;
}

function replaced(text) {
  return text.replace(/\$\{(\w+):raw\}/g, (whole, name) => chosen[name] ?? whole);
}

function configuration(panel) {
  const { defaults, overrides } = structuredClone(panel.fieldConfig);
  if (!UNITS.has(defaults.unit)) complain(panel, `unknown unit ${defaults.unit}`);
  defaults.color ??= { mode: FieldColorModeId.Thresholds };
  if (!fieldColorModeRegistry.getIfExists(defaults.color.mode)) complain(panel, `unknown colours ${defaults.color.mode}`);
  const steps = overrides.flatMap((override) => override.properties).filter((one) => one.id === 'thresholds');
  for (const { steps: all } of [defaults.thresholds, ...steps.map((one) => one.value)])
    for (const step of all) step.value ??= -Infinity;
  for (const property of overrides.flatMap((override) => override.properties))
    if (!properties.getIfExists(property.id)) complain(panel, `unknown property ${property.id}`);
  return { defaults, overrides };
}

const [start, end] = [dateTime(from * 1000), dateTime(to * 1000)];
const timeRange = { from: start, to: end, raw: { from: start, to: end } };

function Picture({ panel, data, width, height }) {
  const { options } = panel;
  const empty = { display: 'flex', height: '100%', alignItems: 'center', justifyContent: 'center', opacity: 0.6 };
  const rows = data[0]?.length ?? 0;
  if (!data.length || (panel.type === 'table' && !rows)) return <div style={empty}>No data</div>;
  const numbers = () => getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: options.reduceOptions, replaceVariables: replaced, theme, data,
    sparkline: options.graphMode === 'area', timeZone: 'utc',
  });
  const each = (renderValue, orientation) => (
    <VizRepeater getValues={numbers} renderValue={renderValue} width={width} height={height} source={data}
      itemSpacing={4} renderCounter={0} autoGrid orientation={orientation} getAlignmentFactors={getDisplayValueAlignmentFactors} minVizHeight={options.minVizHeight}
      maxVizHeight={options.maxVizHeight} />
  );
  switch (panel.type) {
    case 'timeseries':
      return <TimeSeries frames={data} width={width} height={height} timeRange={timeRange} timeZone="utc"
        legend={options.legend} options={options} replaceVariables={replaced} />;
    case 'stat':
      return each(({ value, width, height }) => (
        <BigValue value={{ ...value.display, title: '' }} sparkline={value.sparkline} width={width} height={height}
          theme={theme} colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode}
          textMode={options.textMode} />
      ), VizOrientation.Auto);
    case 'bargauge':
      return each(({ value, width, height, alignmentFactors }) => (
        <BarGauge value={value.display} field={value.field} width={width} height={height} theme={theme}
          display={value.view?.getFieldDisplayProcessor(value.colIndex)} orientation={VizOrientation.Horizontal}
          displayMode={options.displayMode} valueDisplayMode={options.valueMode} namePlacement={options.namePlacement}
          showUnfilled={options.showUnfilled} itemSpacing={8} lcdCellWidth={12} alignmentFactors={alignmentFactors} />
      ), VizOrientation.Horizontal);
    case 'table':
      return <TableNG data={data[0]} width={width} height={height} showTypeIcons={false} structureRev={1}
        enableSharedCrosshair={false} getActions={() => []} />;
    default:
      complain(panel, `nothing draws panels of type ${panel.type}`);
      return null;
  }
}

export function Panel({ panel, width, height }) {
  const [state, set] = useState(null);
  useEffect(() => {
    load(panel, width)
      .then((data) => set({ data }), (error) => { complain(panel, error.message); set({ error: error.message }); })
      .finally(() => { window.drawn += 1; });
  }, []);
  return (
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height}
      loadingState={state ? LoadingState.Done : LoadingState.Loading} statusMessage={state?.error}>
      {(inside, below) => state?.data ? <Picture panel={panel} data={state.data} width={inside} height={below} /> : null}
    </PanelChrome>
  );
}
