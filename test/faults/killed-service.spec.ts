import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DataFolder } from '../support/data-folder.js';
import { Load } from '../support/load.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

const KILLS = 20;
const CONNECTIONS = 16;
/** Each kill comes at a different moment of the load. */
const SHORTEST_LOAD_MS = 150;
const LONGER_EACH_TIME_MS = 20;
const FIRST_START_STEP_MS = 200;
const TIME_LIMIT_MS = 300_000;

describe('A service that is killed (SIGKILL)', () => {
  const undo = undoAfterEach();

  /** Kills the service under load and starts it again, many times. Plants that it did not acknowledge are sent again. */
  async function killUnderLoad(env: Record<string, string>): Promise<Load> {
    let service = await ServiceProcess.start(env);
    undo(() => service.end('SIGKILL'));
    const load = new Load(service.port);
    for (let kill = 0; kill < KILLS; kill++) {
      load.start(CONNECTIONS);
      // Otherwise the service could be killed before the load has begun.
      await load.more(CONNECTIONS);
      await delay(SHORTEST_LOAD_MS + kill * LONGER_EACH_TIME_MS);
      await service.end('SIGKILL');
      await load.stop();
      service = await ServiceProcess.start(env, service.port);
      await load.retry();
    }
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
    return load;
  }

  function expectNothingLost(name: string, load: Load, lost: number[]): void {
    report(name, {
      kills: KILLS,
      acknowledged: load.acknowledged.size,
      lost: lost.length,
      'not answered, and 200 when sent again': load.unanswered,
    });
    expect({ lost, wrong: load.wrong, open: load.open.size }).toEqual({ lost: [], wrong: [], open: 0 });
    // Otherwise the kills missed the load.
    expect(load.unanswered).toBeGreaterThan(KILLS);
  }

  needs('postgres')('on a server database', () => {
    test(
      `loses no acknowledged plant in ${KILLS} kills`,
      async () => {
        const cluster = await PostgresCluster.start();
        undo(() => cluster.remove());
        const load = await killUnderLoad({ DATABASE_URL: cluster.url() });
        const lost = await load.lost((sql) => cluster.query(sql));
        expectNothingLost('Service killed, server database', load, lost);
      },
      TIME_LIMIT_MS,
    );
  });

  describe('on the embedded database', () => {
    test(
      `loses no acknowledged plant in ${KILLS} kills`,
      async () => {
        const folder = new DataFolder();
        undo(() => folder.remove());
        const load = await killUnderLoad({ DATA_DIR: folder.path });
        const lost = await load.lost((sql) => folder.query(sql));
        expectNothingLost('Service killed, embedded database', load, lost);
      },
      TIME_LIMIT_MS,
    );

    test(
      'starts again after a kill at any moment of its first start',
      async () => {
        const folder = new DataFolder();
        undo(() => folder.remove());
        let kills = 0;
        let moment = FIRST_START_STEP_MS;
        for (;;) {
          const wasMade = existsSync(folder.database);
          const service = await ServiceProcess.spawn({ DATA_DIR: folder.path });
          undo(() => service.end('SIGKILL'));
          const ready = service.ready().then(
            () => true,
            () => false,
          );
          const wasReady = await Promise.race([ready, delay(moment, false)]);
          expect(service.output).toBe('');
          expect(service.isRunning).toBe(true);
          if (wasReady) {
            expect(await new Load(service.port).create(1)).toBe(true);
            break;
          }
          await service.end('SIGKILL');
          kills++;
          // When the database exists, step through the rest of the first start from its beginning.
          const isMade = existsSync(folder.database);
          moment = isMade && !wasMade ? FIRST_START_STEP_MS : moment + FIRST_START_STEP_MS;
        }
        expect(kills).toBeGreaterThan(0);
        report('Service killed during its first start, 0.2 s later each time', {
          kills,
          'starts that failed': 0,
        });
      },
      TIME_LIMIT_MS,
    );
  });
});
