// The report of a run: tables in the terminal, and files in bench/results/.
import { closeSync, fdatasyncSync, mkdirSync, openSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { DISK } from './postgres.js';

const RESULTS = new URL('results/', import.meta.url);

/** @returns the median, or undefined if one of the values was not measured. */
export function median(values) {
  if (values.includes(undefined)) return undefined;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @returns the range of the values, as a percentage of their median. */
export function spread(values) {
  return `${Math.round(((Math.max(...values) - Math.min(...values)) / median(values)) * 100)} %`;
}

/** Shows three significant digits, or all before the point. More would be noise. */
function format(cell) {
  if (cell === undefined) return '–';
  if (typeof cell !== 'number') return cell;
  return Math.abs(cell) >= 100 ? Math.round(cell).toLocaleString('en') : String(Number(cell.toPrecision(3)));
}

/** Prints a table with its first column aligned left and the others right. */
export function printTable(head, rows) {
  const lines = [head, ...rows.map((row) => row.map(format))];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  console.log();
  for (const line of lines) {
    const cells = line.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    );
    console.log(cells.join('  '));
  }
}

/** @returns a target that the median of the rounds must reach; undefined if nothing was measured. */
export const atLeast = (bound, what, rounds) =>
  target('at least', bound, what, rounds, (value) => value >= bound);

/** @returns a target that the median of the rounds must not exceed; undefined if nothing was measured. */
export const atMost = (bound, what, rounds) =>
  target('at most', bound, what, rounds, (value) => value <= bound);

function target(sense, bound, what, rounds, isMetBy) {
  const value = rounds && median(rounds);
  return value === undefined ? undefined : { what, sense, bound, value, isMet: isMetBy(value), rounds };
}

export function printTargets(targets) {
  printTable(
    ['Target', 'wanted', 'median', '', 'rounds'],
    targets.map(({ what, sense, bound, value, isMet, rounds }) => [
      what,
      `${sense} ${bound}`,
      value,
      isMet ? 'met' : 'missed',
      rounds.length > 1 && rounds.length <= 5 ? rounds.map(format).join(' ') : '',
    ]),
  );
}

/** Writes the targets as a page, with every round. */
export function writeTargets(name, targets, { processor, cores, node, postgresql, disk, date }) {
  const lines = targets.map(({ what, sense, bound, value, isMet, rounds }) => {
    const all = rounds.length > 1 && rounds.length <= 5 ? rounds.map(format).join(' · ') : '';
    return `| ${what} | ${sense} ${bound} | ${format(value)} | ${isMet ? 'met' : 'missed'} | ${all} |`;
  });
  write(
    `${name}.md`,
    `# Targets

${date}, ${processor} (${cores} cores), Node.js ${node}, PostgreSQL ${postgresql}; a page written to ${disk.folder} is durable after ${disk.durableWriteMicroseconds} µs.

| Target | Wanted | Median | | Rounds |
| --- | --- | --- | --- | --- |
${lines.join('\n')}
`,
  );
}

/** @returns the machine and the programs that the figures were measured on. */
export function machine(database) {
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: cpus()[0].model,
    cores: cpus().length,
    memoryGibibytes: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    postgresql: database.version,
    disk: { folder: DISK, durableWriteMicroseconds: Math.round(durableWriteMicroseconds()) },
  };
}

/** @returns how long a written page takes to become durable, as each commit must wait, in microseconds. */
function durableWriteMicroseconds() {
  const path = join(DISK, `plant-store-bench-${process.pid}`);
  const file = openSync(path, 'w');
  unlinkSync(path);
  const page = new Uint8Array(8192);
  const times = Array.from({ length: 101 }, () => {
    const begun = performance.now();
    writeSync(file, page, 0, page.length, 0);
    fdatasyncSync(file);
    return (performance.now() - begun) * 1000;
  });
  closeSync(file);
  return median(times);
}

export function writeJson(name, content) {
  write(`${name}.json`, `${JSON.stringify(content, null, 2)}\n`);
}

export function write(name, text) {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(new URL(name, RESULTS), text);
  console.log(`Written: bench/results/${name}`);
}
