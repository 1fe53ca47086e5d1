// How long the service takes from its start until it is ready, on a migrated server database.
import { createDatabase } from './postgres.js';
import { atMost, median, printTable } from './report.js';
import { startService } from './servers.js';

const BOUND_MS = 500;

export async function measureStart({ isQuick }) {
  const starts = isQuick ? 3 : 10;
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

  printTable(
    ['', 'ms'],
    [
      ['first, with the migration', migrating.startMs],
      ['median of the others', median(milliseconds)],
      ['slowest of the others', Math.max(...milliseconds)],
    ],
  );
  return {
    database,
    results: { milliseconds },
    targets: [atMost(BOUND_MS, 'ms from start to ready', milliseconds)],
  };
}
