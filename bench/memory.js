// The resident memory of the service under load, over ten minutes.
import { setTimeout as delay } from 'node:timers/promises';
import { residentMebibytes } from '../test/support/machine.js';
import { loadOverHttp } from './load.js';
import { createDatabase } from './postgres.js';
import { atMost, printTable } from './report.js';
import { startService } from './servers.js';

const CONNECTIONS = 256;
const MINUTES = 10;
const READINGS_A_MINUTE = 30;
const BOUND_MEBIBYTES = 150;
/** The most that the second half may use, relative to minute 2. */
const BOUND_GROWTH = 1.1;

export async function measureMemory({ isQuick }) {
  // A quick run makes each minute a second, to see that the measurement works.
  const minuteSeconds = isQuick ? 1 : 60;
  const database = await createDatabase();
  const service = await startService(database);
  const idle = residentMebibytes(service.pid);

  const load = loadOverHttp(database, [service], {
    connections: CONNECTIONS,
    seconds: MINUTES * minuteSeconds,
  });
  // Take the highest reading of each minute, because garbage collection makes the resident memory go up and down.
  const minutes = [];
  const readings = (async () => {
    for (let minute = 1; minute <= MINUTES; minute++) {
      const read = [];
      while (read.length < READINGS_A_MINUTE) {
        read.push(residentMebibytes(service.pid));
        await delay((minuteSeconds * 1000) / READINGS_A_MINUTE);
      }
      minutes.push(Math.max(...read));
      console.log(`Minute ${minute} of ${MINUTES}: ${Math.round(minutes.at(-1))} MiB`);
    }
  })();
  const [{ rate }] = await Promise.all([load, readings]);

  // In the first minute the heap grows until V8 collects all of it for the first time.
  const [, second] = minutes;
  const highest = Math.max(...minutes.slice(MINUTES / 2));
  printTable(
    ['', 'MiB'],
    [['idle', idle], ...minutes.map((resident, index) => [`highest of minute ${index + 1}`, resident])],
  );
  return {
    database,
    plan: { connections: CONNECTIONS, minuteSeconds },
    results: { rate, idle, minutes },
    targets: [
      atMost(BOUND_MEBIBYTES, `MiB resident in minutes 2 to ${MINUTES} at ${CONNECTIONS} connections`, [
        Math.max(...minutes.slice(1)),
      ]),
      atMost(BOUND_GROWTH, 'highest of minutes 6 to 10, against minute 2', [highest / second]),
    ],
  };
}
