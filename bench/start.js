// `npm run bench -- --start`: how long the service takes from its start to ready, on a migrated server database.
import { createDatabase } from './postgres.js';
import { machine, median, printTable, printTargets, writeJson } from './report.js';
import { build, startService } from './servers.js';

const BOUND_MS = 1_500;

export async function measureStart({ isQuick }) {
  const starts = isQuick ? 3 : 10;
  console.log('Building the service and starting PostgreSQL');
  await build();
  const database = await createDatabase();
  const migrating = await startService(database);
  await migrating.stop();

  const milliseconds = [];
  for (let number = 1; number <= starts; number++) {
    const service = await startService(database);
    milliseconds.push(service.startMs);
    console.log(`Start ${number} of ${starts}: ready after ${Math.round(service.startMs)} ms`);
    await service.stop();
  }

  const typical = median(milliseconds);
  printTable(
    ['', 'ms'],
    [
      ['first, with the migration', migrating.startMs],
      ['median of the others', typical],
      ['slowest of the others', Math.max(...milliseconds)],
    ],
  );
  const targets = [
    { what: 'ms to ready', sense: 'at most', bound: BOUND_MS, value: typical, isMet: typical <= BOUND_MS },
  ];
  printTargets(targets);
  writeJson(isQuick ? 'start-quick' : 'start', {
    machine: machine(database),
    results: { milliseconds },
    targets,
  });
}
