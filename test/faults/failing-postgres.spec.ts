import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { Load } from '../support/load.js';
import { until } from '../support/patience.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs, needsRoot } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { SmallDisk } from '../support/small-disk.js';
import { undoAfterEach } from '../support/undo.js';

const SECOND = 1_000;
/** How long each fault lasts. */
const FROZEN_MS = 30 * SECOND;
const LOCKED_MS = 30 * SECOND;
const BROKEN_MS = 6 * SECOND;

/** Three times the default of DATABASE_TIMEOUT_MS, for a busy machine. The longest faults last longer. */
const UNAVAILABLE_WITHIN_MS = 12 * SECOND;
const HEALTHY_MS = 2 * SECOND;
const PROBE_MS = 100;
const CONNECTIONS = 16;
const MEMORY_GROWTH_MB = 4;
/** The default of DATABASE_POOL_SIZE. */
const POOL_SIZE = 4;
const FIRST_AFTERWARDS = 1_000_000_000;
const DISK_MB = 128;
const DISK_LEFT_BYTES = 128 * 1024;
const FILL_PAUSE_MS = 50;

interface Fault {
  name: string;
  lastsMs: number;
  /** Whether creates fail during the fault. If not, every create must succeed. */
  isOutage: boolean;
  env?: Record<string, string>;
  settings?: Record<string, string>;
  /** What is on a small disk, which only root may mount. */
  onSmallDisk?: 'the table' | 'everything';
  /** @returns a function that ends the fault. */
  begin: (server: Server) => (() => unknown) | Promise<() => unknown>;
}

interface Server {
  cluster: PostgresCluster;
  disk: SmallDisk | undefined;
}

const SERVICE_SESSIONS = `FROM pg_stat_activity WHERE application_name = 'plant-store'`;

async function lockTable({ cluster }: Server): Promise<() => Promise<void>> {
  const holder = await cluster.connect('plants');
  await holder.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
  return async () => {
    // Abandoned statements must not pile up on the server behind the lock.
    await until('no abandoned statement waits', async () => (await sessions(cluster)) <= POOL_SIZE);
    await holder.end();
  };
}

/** Takes every connection that is not reserved for the superuser, and those of the service too. */
async function takeConnections({ cluster }: Server): Promise<() => Promise<void>> {
  const taken: pg.Client[] = [];
  const takeOne = async () => {
    const client = new pg.Client({ connectionString: cluster.url('plants', 'store') });
    client.on('error', () => undefined);
    await client.connect();
    taken.push(client);
  };
  for (;;) {
    await cluster.query(`SELECT pg_terminate_backend(pid) ${SERVICE_SESSIONS}`);
    while (
      await takeOne().then(
        () => true,
        () => false,
      )
    );
    const [left] = await cluster.query<{ count: string }>(`SELECT count(*) ${SERVICE_SESSIONS}`);
    if (left?.count === '0') break;
  }
  return async () => {
    await Promise.all(taken.map((client) => client.end()));
  };
}

const FAULTS: Fault[] = [
  {
    name: 'killed and started again',
    lastsMs: BROKEN_MS,
    isOutage: true,
    begin: async ({ cluster }) => {
      await cluster.kill();
      return () => cluster.start();
    },
  },
  {
    name: 'shut down at once and started again',
    lastsMs: BROKEN_MS,
    isOutage: true,
    begin: async ({ cluster }) => {
      await cluster.stopAtOnce();
      return () => cluster.start();
    },
  },
  {
    name: 'ending every session, twice a second',
    lastsMs: BROKEN_MS,
    isOutage: false,
    begin: ({ cluster }) => {
      const ending = setInterval(() => {
        cluster.query(`SELECT pg_terminate_backend(pid) ${SERVICE_SESSIONS}`).catch(() => undefined);
      }, 500);
      return () => clearInterval(ending);
    },
  },
  {
    name: 'frozen for 30 s',
    lastsMs: FROZEN_MS,
    isOutage: true,
    begin: ({ cluster }) => {
      cluster.freeze();
      return () => cluster.thaw();
    },
  },
  {
    name: "the table's disk full",
    lastsMs: BROKEN_MS,
    isOutage: true,
    onSmallDisk: 'the table',
    begin: async ({ cluster, disk }) => {
      await cluster.movePlants(disk?.makeFolder() as string);
      disk?.fill(DISK_LEFT_BYTES);
      return () => disk?.makeRoom();
    },
  },
  {
    name: 'its whole disk full',
    lastsMs: BROKEN_MS,
    isOutage: true,
    onSmallDisk: 'everything',
    settings: { min_wal_size: '2MB', max_wal_size: '4MB' },
    begin: ({ cluster, disk }) => {
      disk?.fill(DISK_LEFT_BYTES);
      return async () => {
        disk?.makeRoom();
        // PostgreSQL stops if it has no room for its write-ahead log.
        if (!cluster.isRunning) await cluster.start();
      };
    },
  },
  {
    name: 'no connection left',
    lastsMs: BROKEN_MS,
    isOutage: true,
    settings: { max_connections: '12' },
    begin: takeConnections,
  },
  { name: 'the table locked for 30 s', lastsMs: LOCKED_MS, isOutage: true, begin: lockTable },
  {
    name: 'the table locked, with two connections',
    lastsMs: BROKEN_MS,
    isOutage: true,
    env: { DATABASE_POOL_SIZE: '2' },
    begin: lockTable,
  },
];

/** Polls both probes. */
class ProbeWatch {
  readonly live = new Set<number | undefined>();
  /** When /health/ready first said 503, and then 200 again, by performance.now(). */
  notReadyAt: number | undefined;
  readyAgainAt: number | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(service: ServiceProcess) {
    this.#timer = setInterval(() => {
      void service.probe('live').then((status) => this.live.add(status));
      void service.probe('ready').then((status) => {
        if (status !== 200) {
          this.notReadyAt ??= performance.now();
          this.readyAgainAt = undefined;
        } else if (this.notReadyAt !== undefined) this.readyAgainAt ??= performance.now();
      });
    }, PROBE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

async function sessions(cluster: PostgresCluster): Promise<number> {
  const [row] = await cluster.query<{ count: string }>(`SELECT count(*) ${SERVICE_SESSIONS}`);
  return Number(row?.count);
}

const elapsed = (from: number, to: number | undefined) =>
  to === undefined ? 'never' : Math.round(to - from);

needs('postgres')('PostgreSQL', () => {
  const undo = undoAfterEach();

  async function startServer({ onSmallDisk, settings }: Fault): Promise<Server> {
    const disk = onSmallDisk && new SmallDisk(DISK_MB);
    undo(() => disk?.remove());
    const folder = onSmallDisk === 'everything' ? disk?.makeFolder() : undefined;
    const cluster = await PostgresCluster.start(settings, folder);
    undo(() => cluster.remove());
    await cluster.query('CREATE ROLE store LOGIN');
    await cluster.query('CREATE DATABASE plants OWNER store');
    return { cluster, disk };
  }

  describe.each(FAULTS)('$name', (fault) => {
    (fault.onSmallDisk === undefined ? test : needsRoot())(
      'loses no acknowledged plant, is answered 503 in time, and needs no restart of the service',
      async () => {
        const { name, lastsMs, isOutage, env, begin } = fault;
        const { cluster, disk } = await startServer(fault);
        const url = cluster.url('plants', 'store');
        const service = await ServiceProcess.start({ DATABASE_URL: url, ...env });
        undo(() => service.end('SIGKILL'));
        const load = new Load(service.port);
        await load.during(HEALTHY_MS, CONNECTIONS);
        expect([load.unavailable, load.unanswered]).toEqual([0, 0]);
        const memory = await service.memory();

        const watch = new ProbeWatch(service);
        undo(() => watch.stop());
        load.start(CONNECTIONS);
        const end = await begin({ cluster, disk });
        // The disk is full when a create fails. A new WAL segment needs room at once.
        while (disk !== undefined && load.unavailable === 0) {
          await cluster.query('SELECT pg_switch_wal()').catch(() => undefined);
          await delay(FILL_PAUSE_MS);
        }
        const begun = performance.now();
        await delay(lastsMs);
        if (isOutage) {
          await until('the service is not ready', () => watch.notReadyAt !== undefined);
          await until('creates are answered 503', () => load.unavailable > 0);
        }
        await end();
        const ended = performance.now();
        if (isOutage) await until('the service is ready again', () => watch.readyAgainAt !== undefined);
        const first = await load.create(FIRST_AFTERWARDS);
        watch.stop();
        await load.stop();
        const growth = (await service.memory()) - memory;
        await load.retry();
        const lost = await load.lost((sql) => cluster.query(sql, [], 'plants'));

        report(`PostgreSQL ${name}`, {
          acknowledged: load.acknowledged.size,
          lost: lost.length,
          '503': load.unavailable,
          'slowest 503 (ms)': Math.round(load.slowestUnavailableMs),
          unanswered: load.unanswered,
          'not ready after (ms)': elapsed(begun, watch.notReadyAt),
          'ready again after (ms)': elapsed(ended, watch.readyAgainAt),
          'memory growth (MB)': growth.toFixed(1),
        });
        expect({ lost, wrong: load.wrong, unanswered: load.unanswered, first }).toEqual({
          lost: [],
          wrong: [],
          unanswered: 0,
          first: true,
        });
        expect(service.isRunning).toBe(true);
        expect([...watch.live]).toEqual([200]);
        expect(load.slowestUnavailableMs).toBeLessThan(UNAVAILABLE_WITHIN_MS);
        expect(growth).toBeLessThan(MEMORY_GROWTH_MB);
        const poolSize = Number(env?.DATABASE_POOL_SIZE ?? POOL_SIZE);
        await until('no session is left over', async () => (await sessions(cluster)) <= poolSize);
        if (!isOutage) expect(load.unavailable).toBe(0);
      },
      fault.lastsMs + 300 * SECOND,
    );
  });
});
