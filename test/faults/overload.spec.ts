import { setTimeout as delay } from 'node:timers/promises';
import { Load } from '../support/load.js';
import { until } from '../support/patience.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

const SECOND = 1_000;
const OVERLOAD_MS = 60 * SECOND;
/** How many times more creates are sent than the database can store. */
const TIMES = 10;
/**
 * How long each statement takes that inserts a row; the readiness check inserts none. With so slow a database, this
 * machine can send ten times more than it can store.
 */
const STATEMENT_SECONDS = 1;
const CAPACITY_MS = 5 * SECOND;
const CAPACITY_CONNECTIONS = 512;
/** Five times the default of DATABASE_TIMEOUT_MS, for a busy machine. Creates that all waited would take minutes. */
const LIMIT_MS = 20 * SECOND;
const RECOVERY_MS = 5 * SECOND;
/** The memory limit of a replica in the Kubernetes manifest. */
const RESIDENT_MB = 512;
const MEMORY_GROWTH_MB = 4;

needs('postgres')('Ten times more creates than the database can store', () => {
  const undo = undoAfterEach();

  test(
    `are answered in time for ${OVERLOAD_MS / SECOND} s: at least half as many as before with 200, the rest with 503`,
    async () => {
      const cluster = await PostgresCluster.start();
      undo(() => cluster.remove());
      const service = await ServiceProcess.start({ DATABASE_URL: cluster.url() });
      undo(() => service.end('SIGKILL'));
      await cluster.query(`
      CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF EXISTS (SELECT FROM added) THEN PERFORM pg_sleep(${STATEMENT_SECONDS}); END IF; RETURN NULL; END';
      CREATE TRIGGER take_time AFTER INSERT ON plants REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION take_time()`);

      const capacity = await measure(new Load(service.port), CAPACITY_MS);
      const memory = await service.memory();

      const load = new Load(service.port, 1_000_000);
      let resident = 0;
      const watch = setInterval(() => (resident = Math.max(resident, service.residentMemory())), SECOND);
      undo(() => clearInterval(watch));
      await load.offer(TIMES * capacity, OVERLOAD_MS);
      clearInterval(watch);

      await delay(RECOVERY_MS);
      const live = await service.probe('live');
      await until('the service is ready', async () => (await service.probe('ready')) === 200);
      const after = new Load(service.port, 2_000_000);
      const recovered = await measure(after, CAPACITY_MS);
      const growth = (await service.memory()) - memory;
      const lost = await load.lost((sql) => cluster.query(sql));

      const kept = load.acknowledged.size / (OVERLOAD_MS / SECOND);
      report(`${TIMES} times more creates than the database can store`, {
        seconds: OVERLOAD_MS / SECOND,
        'capacity (creates/s)': Math.round(capacity),
        offered: load.acknowledged.size + load.open.size,
        acknowledged: load.acknowledged.size,
        lost: lost.length,
        '503': load.unavailable,
        unanswered: load.unanswered,
        'slowest 200 (ms)': Math.round(load.slowestAcknowledgedMs),
        'slowest 503 (ms)': Math.round(load.slowestUnavailableMs),
        'creates/s stored during the overload': Math.round(kept),
        'creates/s afterwards': Math.round(recovered),
        'highest resident memory (MB)': Math.round(resident),
        'memory growth (MB)': growth.toFixed(1),
      });
      expect({ lost, wrong: load.wrong, unanswered: load.unanswered, live }).toEqual({
        lost: [],
        wrong: [],
        unanswered: 0,
        live: 200,
      });
      expect(Math.max(load.slowestAcknowledgedMs, load.slowestUnavailableMs)).toBeLessThan(LIMIT_MS);
      expect(kept).toBeGreaterThan(capacity / 2);
      expect(recovered).toBeGreaterThan(capacity / 2);
      expect(resident).toBeLessThan(RESIDENT_MB);
      expect(growth).toBeLessThan(MEMORY_GROWTH_MB);
    },
    OVERLOAD_MS + 300 * SECOND,
  );
});

/** @returns how many creates per second the database stores when enough of them wait. */
async function measure(load: Load, milliseconds: number): Promise<number> {
  await load.during(milliseconds, CAPACITY_CONNECTIONS);
  return load.acknowledged.size / (milliseconds / SECOND);
}
