// @ts-check
const WIDTH = 760;
const LABEL = 190;
const BAR = 16;
const ROW = 2 * BAR + 18;
const TOP = 46;

/**
 * Microseconds of processor for a request, ours above the floor's, as an SVG that reads on light and dark pages.
 *
 * @param {import('./report.js').Run} run
 */
export function plot({ routes, peers }) {
  const rows = [
    ...routes.map(({ name, floor, service }) => ({ name, cpu: service.cpu, floor: floor.cpu })),
    ...peers.map(({ name, cpu }) => ({ name: name.split(':')[0] ?? name, cpu, floor: undefined })),
  ];
  const longest = Math.max(...rows.map(({ cpu }) => cpu));
  const scale = (WIDTH - LABEL - 60) / longest;
  const bar = (/** @type {number} */ cpu, /** @type {number} */ y, /** @type {string} */ kind) =>
    `<rect class="${kind}" x="${LABEL}" y="${y}" width="${(cpu * scale).toFixed(1)}" height="${BAR}"/>` +
    `<text x="${(LABEL + cpu * scale + 6).toFixed(1)}" y="${y + BAR - 4}">${Math.round(cpu)}</text>`;
  const drawn = rows.map(({ name, cpu, floor }, index) => {
    const y = TOP + index * ROW;
    const label = `<text x="${LABEL - 10}" y="${y + BAR}" text-anchor="end">${name}</text>`;
    const ours = floor === undefined ? 'peer' : 'service';
    return label + bar(cpu, y, ours) + (floor === undefined ? '' : bar(floor, y + BAR, 'floor'));
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${TOP + rows.length * ROW}" font-family="sans-serif" font-size="12">
<title>CPU microseconds for a request: the service, the floor, other servers</title>
<style>
text { fill: #57606a } .service { fill: #2f6fdb } .floor { fill: #9aa7b5 } .peer { fill: #c9812e }
@media (prefers-color-scheme: dark) { text { fill: #b8c0c8 } }
</style>
<text x="${LABEL}" y="18">CPU µs of the server's process for a request</text>
<rect class="service" x="${LABEL}" y="27" width="10" height="10"/><text x="${LABEL + 16}" y="36">service</text>
<rect class="floor" x="${LABEL + 90}" y="27" width="10" height="10"/><text x="${LABEL + 106}" y="36">floor</text>
<rect class="peer" x="${LABEL + 170}" y="27" width="10" height="10"/><text x="${LABEL + 186}" y="36">another server</text>
${drawn.join('\n')}
</svg>
`;
}
