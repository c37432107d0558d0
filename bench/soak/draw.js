// @ts-check
const WIDTH_PX = 760;
const LEFT_PX = 50;
const RIGHT_PX = 10;
const TOP_PX = 70;
const PANEL_PX = 130;
const GAP_PX = 34;
const LABEL_ROWS_COUNT = 3;

/** @type {['rssMb' | 'heapMb' | 'lagMs', string][]} */
const PANELS = [
  ['rssMb', 'resident memory of each process, MB'],
  ['heapMb', 'used heap of each process, MB'],
  ['lagMs', 'longest delay of the event loop in each second, ms'],
];

/**
 * Draws memory and event loop of each process as an SVG for light and dark pages, with a vertical line at each event.
 *
 * @param {Pick<import('./report.js').Soak, 'durationMs' | 'pods' | 'events'>} soak
 */
export function drawSoak({ durationMs, pods, events }) {
  const width = WIDTH_PX - LEFT_PX - RIGHT_PX;
  const x = (/** @type {number} */ at) => LEFT_PX + (at / durationMs) * width;
  const height = TOP_PX + PANELS.length * (PANEL_PX + GAP_PX);

  const panels = PANELS.map(([what, title], index) => {
    const top = TOP_PX + index * (PANEL_PX + GAP_PX);
    const bottom = top + PANEL_PX;
    const highest = Math.max(1, ...pods.flatMap(({ samples }) => samples.map((sample) => sample[what])));
    const lines = pods.map(({ samples }, order) => {
      const points = highestPerPixel(samples.map((sample) => [x(sample.at), sample[what]]));
      const line = points.map(([at, value]) => `${at},${(bottom - (value / highest) * PANEL_PX).toFixed(1)}`);
      return `<polyline class="${order % 2 === 0 ? 'even' : 'odd'}" points="${line.join(' ')}"/>`;
    });
    return [
      `<text x="${LEFT_PX}" y="${top - 8}">${title}</text>`,
      `<text x="${LEFT_PX - 6}" y="${top + 8}" text-anchor="end">${Math.round(highest)}</text>`,
      `<text x="${LEFT_PX - 6}" y="${bottom}" text-anchor="end">0</text>`,
      `<path class="axis" d="M${LEFT_PX} ${top}V${bottom}H${WIDTH_PX - RIGHT_PX}"/>`,
      ...lines,
    ].join('\n');
  });
  const marks = events.map(({ name, from }, index) => {
    const at = x(from).toFixed(1);
    const row = 14 + (index % LABEL_ROWS_COUNT) * 14;
    return `<path class="event" d="M${at} ${row + 3}V${height - GAP_PX}"/><text x="${at}" y="${row}" text-anchor="middle">${name}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH_PX} ${height}" font-family="sans-serif" font-size="12">
<title>Memory and event loop of each process during the soak</title>
<style>
text { fill: #57606a } polyline { fill: none } .even { stroke: #2f6fdb } .odd { stroke: #c9812e }
.axis { stroke: #9aa7b5; fill: none } .event { stroke: #9aa7b5; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { text { fill: #b8c0c8 } }
</style>
${marks.join('\n')}
${panels.join('\n')}
<text x="${LEFT_PX}" y="${height - 12}">0</text>
<text x="${WIDTH_PX - RIGHT_PX}" y="${height - 12}" text-anchor="end">${(durationMs / 60_000).toFixed(1)} minutes</text>
</svg>
`;
}

/** The highest value of each pixel of the x axis. @param {[number, number][]} points @returns {[number, number][]} */
function highestPerPixel(points) {
  /** @type {Map<number, number>} */
  const highest = new Map();
  for (const [at, value] of points) highest.set(Math.round(at), Math.max(value, highest.get(Math.round(at)) ?? 0));
  return [...highest];
}
