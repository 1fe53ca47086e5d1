// `npm run bench`; see README.md in this folder.
import { parseArgs } from 'node:util';
import { writeChart } from './chart.js';
import { compare } from './comparison.js';
import { measureGrowth } from './growth.js';
import { measureMemory } from './memory.js';
import { programPath } from '../test/support/machine.js';
import { BenchError, runToEnd, undoAll } from './processes.js';
import { machine, printTargets, writeJson, writeTargets } from './report.js';
import { build } from './servers.js';
import { measureStart } from './start.js';
import { measureTricks } from './tricks.js';

const PARTS = {
  comparison: compare,
  start: measureStart,
  memory: measureMemory,
  growth: measureGrowth,
  tricks: measureTricks,
};
/** What `npm run bench` measures if no part is named. */
const TARGETED = ['comparison', 'start', 'memory'];

/** @throws {BenchError} if programs are missing, with their names. */
function requirePrograms() {
  const needed = [
    'wrk',
    'pgbench',
    ...(process.env.BENCH_DATABASE_URL === undefined ? ['initdb', 'postgres'] : []),
  ];
  const missing = needed.filter((name) => programPath(name) === undefined);
  if (missing.length > 0) {
    throw new BenchError(`Missing: ${missing.join(', ')}. On Debian: apt-get install postgresql wrk`);
  }
}

await runToEnd(async () => {
  const { values } = parseArgs({
    options: Object.fromEntries([...Object.keys(PARTS), 'quick'].map((name) => [name, { type: 'boolean' }])),
  });
  requirePrograms();
  const isQuick = values.quick === true;
  const named = Object.keys(PARTS).filter((name) => values[name]);
  console.log('Building the service and the baselines');
  await build();
  const allTargets = [];
  let where;
  for (const name of named.length > 0 ? named : TARGETED) {
    const { database, plan, results, targets = [], bars } = await PARTS[name]({ isQuick });
    // End the processes of this part before the next one begins.
    await undoAll();
    const file = `${name === 'comparison' ? 'latest' : name}${isQuick ? '-quick' : ''}`;
    where = machine(database);
    writeJson(file, { machine: where, plan, results, targets });
    if (bars !== undefined) writeChart(file, bars);
    allTargets.push(...targets);
  }
  if (allTargets.length === 0) return;
  printTargets(allTargets);
  if (named.length === 0) writeTargets(isQuick ? 'targets-quick' : 'targets', allTargets, where);
});
