// @ts-check
const WIDTH_PX = 760;
const LABEL_WIDTH_PX = 190;
const BAR_HEIGHT_PX = 16;
const ROW_HEIGHT_PX = 2 * BAR_HEIGHT_PX + 18;
const TOP_PX = 46;

/**
 * Draws the processor time per request as an SVG for light and dark pages. The service is above the floor.
 *
 * @param {import('./report.js').Run} run
 */
export function plot({ routes, peers }) {
  const rows = [
    ...routes.map(({ name, floor, service }) => ({ name, cpu: service.cpu, floor: floor.cpu })),
    ...peers.map(({ name, cpu }) => ({ name: name.split(':')[0] ?? name, cpu, floor: undefined })),
  ];
  const maxCpu = Math.max(...rows.map(({ cpu }) => cpu));
  const scale = (WIDTH_PX - LABEL_WIDTH_PX - 60) / maxCpu;
  const bar = (/** @type {number} */ cpu, /** @type {number} */ y, /** @type {string} */ kind) =>
    `<rect class="${kind}" x="${LABEL_WIDTH_PX}" y="${y}" width="${(cpu * scale).toFixed(1)}" height="${BAR_HEIGHT_PX}"/>` +
    `<text x="${(LABEL_WIDTH_PX + cpu * scale + 6).toFixed(1)}" y="${y + BAR_HEIGHT_PX - 4}">${Math.round(cpu)}</text>`;
  const drawn = rows.map(({ name, cpu, floor }, index) => {
    const y = TOP_PX + index * ROW_HEIGHT_PX;
    const label = `<text x="${LABEL_WIDTH_PX - 10}" y="${y + BAR_HEIGHT_PX}" text-anchor="end">${name}</text>`;
    const series = floor === undefined ? 'peer' : 'service';
    return label + bar(cpu, y, series) + (floor === undefined ? '' : bar(floor, y + BAR_HEIGHT_PX, 'floor'));
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH_PX} ${TOP_PX + rows.length * ROW_HEIGHT_PX}" font-family="sans-serif" font-size="12">
<title>CPU microseconds for a request: the service, the floor, other servers</title>
<style>
text { fill: #57606a } .service { fill: #2f6fdb } .floor { fill: #9aa7b5 } .peer { fill: #c9812e }
@media (prefers-color-scheme: dark) { text { fill: #b8c0c8 } }
</style>
<text x="${LABEL_WIDTH_PX}" y="18">CPU µs of the server's process for a request</text>
<rect class="service" x="${LABEL_WIDTH_PX}" y="27" width="10" height="10"/><text x="${LABEL_WIDTH_PX + 16}" y="36">service</text>
<rect class="floor" x="${LABEL_WIDTH_PX + 90}" y="27" width="10" height="10"/><text x="${LABEL_WIDTH_PX + 106}" y="36">floor</text>
<rect class="peer" x="${LABEL_WIDTH_PX + 170}" y="27" width="10" height="10"/><text x="${LABEL_WIDTH_PX + 186}" y="36">another server</text>
${drawn.join('\n')}
</svg>
`;
}
