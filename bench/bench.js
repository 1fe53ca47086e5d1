// `npm run bench`, see README.md beside this file.
import { parseArgs } from 'node:util';
import { compare } from './comparison.js';
import { measureGrowth } from './growth.js';
import { measureMemory } from './memory.js';
import { findProgram } from './postgres.js';
import { BenchError, runToEnd } from './processes.js';
import { measureStart } from './start.js';

const MODES = { growth: measureGrowth, memory: measureMemory, start: measureStart };

/** @throws {BenchError} that names every program that is missing. */
function requirePrograms() {
  const needed = [
    'wrk',
    'pgbench',
    ...(process.env.BENCH_DATABASE_URL === undefined ? ['initdb', 'postgres'] : []),
  ];
  const missing = needed.filter((name) => findProgram(name) === undefined);
  if (missing.length > 0) {
    throw new BenchError(`Missing: ${missing.join(', ')}. On Debian: apt-get install postgresql wrk`);
  }
}

await runToEnd(async () => {
  const { values } = parseArgs({
    options: Object.fromEntries([...Object.keys(MODES), 'quick'].map((name) => [name, { type: 'boolean' }])),
  });
  requirePrograms();
  const modes = Object.keys(MODES).filter((name) => values[name]);
  const isQuick = values.quick === true;
  if (modes.length === 0) await compare({ isQuick });
  for (const mode of modes) await MODES[mode]({ isQuick });
});
