// The bar chart of a run, for the docs. It is legible on light and on dark pages.
import { write } from './report.js';

const WIDTH = 720;
const LABEL_WIDTH = 220;
const VALUE_WIDTH = 80;
const MARGIN = 20;
const TITLE_HEIGHT = 40;
const BAR_HEIGHT = 22;
const BAR_DISTANCE = 34;

// The chart has its own background, because a page may be dark even if the reader's system is not.
const STYLE = `
  text { font: 14px system-ui, sans-serif; fill: #1f2328; }
  .ground { fill: #ffffff; stroke: #d0d7de; }
  .title { font-weight: 600; }
  .bar { fill: #8c959f; }
  .own { fill: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .ground { fill: #0d1117; stroke: #30363d; }
    .bar { fill: #6e7681; }
    .own { fill: #3fb950; }
  }`;

/** @param bars have a label, a value (a ratio) and isOwn; the longest is first. */
export function writeChart(name, bars) {
  const title = 'Durable creates at 64 connections, in multiples of what pgbench inserts';
  const height = TITLE_HEIGHT + bars.length * BAR_DISTANCE + MARGIN;
  const scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH - 2 * MARGIN) / bars[0].value;
  const lines = bars.flatMap(({ label, value, isOwn }, index) => {
    const y = TITLE_HEIGHT + MARGIN / 2 + index * BAR_DISTANCE;
    const width = Math.max(1, Math.round(value * scale));
    const left = MARGIN + LABEL_WIDTH;
    const number = value.toFixed(2);
    return [
      `<text x="${left - 10}" y="${y + 16}" text-anchor="end">${label}</text>`,
      `<rect class="bar${isOwn ? ' own' : ''}" x="${left}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="3"/>`,
      `<text x="${left + width + 8}" y="${y + 16}">${number}</text>`,
    ];
  });
  write(
    `${name}.svg`,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${title}">
<style>${STYLE}
</style>
<rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
<text class="title" x="${MARGIN}" y="28">${title}</text>
${lines.join('\n')}
</svg>
`,
  );
}
