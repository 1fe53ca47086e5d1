import { setTimeout as delay } from 'node:timers/promises';
import { Load } from '../support/load.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

const SECOND = 1_000;
const OVERLOAD_MS = 60 * SECOND;
/** How many times more creates are sent than the store can take. */
const TIMES = 10;
/**
 * How long the store takes over each statement. So slow a store has its limit far below what this machine can send, and
 * ten times more can be offered to it.
 */
const STATEMENT_SECONDS = 1;
const CAPACITY_MS = 5 * SECOND;
const CAPACITY_CONNECTIONS = 512;
/** DATABASE_TIMEOUT_MS, as it is unless it is set, and what a busy machine may take on top of it. */
const LIMIT_MS = 4 * SECOND + 2 * SECOND;
const RECOVERY_MS = 5 * SECOND;
/** What the Kubernetes manifest allows a replica. */
const RESIDENT_MB = 512;
const MEMORY_GROWTH_MB = 4;

needs('postgres')('Ten times more creates than the store can take', () => {
  const undo = undoAfterEach();

  test(
    `are answered in time for ${OVERLOAD_MS / SECOND} s, as many as before with 200, and the rest with 503`,
    async () => {
      const cluster = await PostgresCluster.start();
      undo(() => cluster.remove());
      const service = await ServiceProcess.start({ DATABASE_URL: cluster.url() });
      undo(() => service.end('SIGKILL'));
      await cluster.query(`
      CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(${STATEMENT_SECONDS}); RETURN NULL; END';
      CREATE TRIGGER take_time AFTER INSERT ON plants EXECUTE FUNCTION take_time()`);

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
      const ready = await service.probe('ready');
      const after = new Load(service.port, 2_000_000);
      const recovered = await measure(after, CAPACITY_MS);
      const growth = (await service.memory()) - memory;
      const lost = await load.lost((sql) => cluster.query(sql));

      const kept = load.acknowledged.size / (OVERLOAD_MS / SECOND);
      report(`${TIMES} times more creates than the store can take`, {
        seconds: OVERLOAD_MS / SECOND,
        'capacity (creates/s)': Math.round(capacity),
        offered: load.acknowledged.size + load.open.size,
        acknowledged: load.acknowledged.size,
        lost: lost.length,
        '503': load.unavailable,
        unanswered: load.unanswered,
        'slowest 200 (ms)': Math.round(load.slowestAcknowledgedMs),
        'slowest 503 (ms)': Math.round(load.slowestUnavailableMs),
        'creates/s stored meanwhile': Math.round(kept),
        'creates/s afterwards': Math.round(recovered),
        'highest resident memory (MB)': Math.round(resident),
        'memory growth (MB)': growth.toFixed(1),
      });
      expect({ lost, wrong: load.wrong, unanswered: load.unanswered, live, ready }).toEqual({
        lost: [],
        wrong: [],
        unanswered: 0,
        live: 200,
        ready: 200,
      });
      expect(Math.max(load.slowestAcknowledgedMs, load.slowestUnavailableMs)).toBeLessThan(LIMIT_MS);
      expect(kept).toBeGreaterThan(capacity / 2);
      expect(recovered).toBeGreaterThan(capacity / 2);
      expect(resident).toBeLessThan(RESIDENT_MB);
      expect(growth).toBeLessThan(MEMORY_GROWTH_MB);
    },
    OVERLOAD_MS + 90 * SECOND,
  );
});

/** Creates a second that the store takes when as many wait as it likes. */
async function measure(load: Load, milliseconds: number): Promise<number> {
  await load.during(milliseconds, CAPACITY_CONNECTIONS);
  return load.acknowledged.size / (milliseconds / SECOND);
}
