import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Load } from '../support/load.js';
import { until } from '../support/patience.js';
import { PgBouncer } from '../support/pgbouncer.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { report } from '../support/report.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';

const REPLICAS = 4;
const LOAD_MS = 3_000;
const CONNECTIONS = 8;
const SUITE_MS = 1_800_000;
/** The lock that src/database/migrate.ts takes. */
const MIGRATION_LOCK = '7309868274398';

needs('postgres', 'pgbouncer')('Replicas on one PostgreSQL server', () => {
  let cluster: PostgresCluster;
  let bouncer: PgBouncer;
  const running: ServiceProcess[] = [];

  beforeAll(async () => {
    cluster = await PostgresCluster.start();
    bouncer = await PgBouncer.start(cluster.url());
  });

  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.end('SIGKILL')));
  });

  afterAll(async () => {
    await bouncer.stop();
    await cluster.remove();
  });

  const ROUTES: [string, (database: string) => string][] = [
    ['directly', (database) => cluster.url(database)],
    ['behind PgBouncer in transaction mode', (database) => bouncer.url(database)],
  ];

  test.each(ROUTES)(`may start ${REPLICAS} at once on an empty database, %s`, async (route, url) => {
    const database = route.startsWith('behind') ? 'pooled' : 'direct';
    await cluster.query(`CREATE DATABASE ${database}`);
    for (let index = 0; index < REPLICAS; index++)
      running.push(await ServiceProcess.spawn({ DATABASE_URL: url(database) }));
    await Promise.all(running.map((service) => service.ready()));
    const loads = running.map(({ port }, index) => new Load(port, index * 1_000_000 + 1));
    await Promise.all(loads.map((load) => load.during(LOAD_MS, 4)));

    const migrations = await cluster.query('SELECT name FROM migrations', [], database);
    const lost = await Promise.all(loads.map((load) => load.lost((sql) => cluster.query(sql, [], database))));
    const acknowledged = loads.reduce((sum, load) => sum + load.acknowledged.size, 0);
    report(`${REPLICAS} replicas at once, ${route}`, { acknowledged, lost: lost.flat().length });
    expect(migrations).toEqual([{ name: 'CreatePlants1764201600000' }]);
    expect(lost.flat()).toEqual([]);
    expect(
      loads.flatMap(({ wrong, unavailable, unanswered }) => [...wrong, unavailable, unanswered]),
    ).toEqual(Array(2 * REPLICAS).fill(0));
  });

  test("wait for each other's migration, even if lock_timeout ends the wait", async () => {
    await cluster.query('CREATE DATABASE migrating');
    await cluster.query(`ALTER DATABASE migrating SET lock_timeout = '200ms'`);
    const other = await cluster.connect('migrating');
    await other.query(`BEGIN; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    const service = await ServiceProcess.spawn({ DATABASE_URL: cluster.url('migrating') });
    running.push(service);
    await until('the service waits', () =>
      service.output.includes('The database cannot be reached yet; waiting for it'),
    );
    expect([service.isRunning, await service.probe('ready')]).toEqual([true, 503]);
    await other.end();
    await service.ready();
  });

  test('keep a column that they do not know over a restart', async () => {
    await cluster.query('CREATE DATABASE extended');
    const first = await ServiceProcess.start({ DATABASE_URL: cluster.url('extended') });
    running.push(first);
    await cluster.query('ALTER TABLE plants ADD extra text', [], 'extended');
    await cluster.query(`INSERT INTO plants (id, name, extra) VALUES (1, 'plant 1', 'kept')`, [], 'extended');
    await first.end('SIGTERM');
    const second = await ServiceProcess.start({ DATABASE_URL: cluster.url('extended') });
    running.push(second);
    const load = new Load(second.port);
    expect(await load.create(1)).toBe(true);
    expect(await load.create(2)).toBe(true);
    expect(await cluster.query('SELECT id, extra FROM plants ORDER BY id', [], 'extended')).toEqual([
      { id: '1', extra: 'kept' },
      { id: '2', extra: null },
    ]);
  });

  test('leave no abandoned statements on the server behind PgBouncer', async () => {
    await cluster.query('CREATE DATABASE locked');
    const service = await ServiceProcess.start({ DATABASE_URL: bouncer.url('locked') });
    running.push(service);
    const load = new Load(service.port);
    load.start(CONNECTIONS);
    await load.more(CONNECTIONS);
    const holder = await cluster.connect('locked');
    await holder.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    // The lock is still held, so no create waits for its end.
    await until('every create has failed twice', () => load.unavailable >= 2 * CONNECTIONS);
    const waiting = async () => {
      const [row] = await cluster.query<{ count: string }>(
        `SELECT count(*) FROM pg_stat_activity WHERE datname = 'locked' AND wait_event_type = 'Lock'`,
      );
      return Number(row?.count);
    };
    // Two statements at a time, and perhaps one of a readiness check. PostgreSQL may still be ending an abandoned one.
    await until('no abandoned statement waits', async () => (await waiting()) <= 3);
    await holder.end();
    await load.create(1_000_000_000);
    await load.stop();
    await load.retry();
    const lost = await load.lost((sql) => cluster.query(sql, [], 'locked'));
    report('The table locked behind PgBouncer', {
      acknowledged: load.acknowledged.size,
      lost: lost.length,
      '503': load.unavailable,
      'slowest 503 (ms)': Math.round(load.slowestUnavailableMs),
    });
    expect({ lost, wrong: load.wrong, open: load.open.size }).toEqual({ lost: [], wrong: [], open: 0 });
  });

  test(
    'pass the whole HTTP suite behind PgBouncer in transaction mode',
    async () => {
      // These need no database, or have their own.
      const leftOut = '/(embedded|database-server|start|deploy|monitoring|contract-judge)\\.spec\\.ts$';
      const args = ['--experimental-vm-modules', '--no-warnings', 'node_modules/jest/bin/jest.js'];
      const env: NodeJS.ProcessEnv = { ...process.env, TEST_DATABASE_URL: bouncer.url('postgres') };
      // The template belongs to this run, and the other run would remove it at its end.
      delete env.PLANT_STORE_TEST_TEMPLATE;
      // Its tests are counted as this one.
      delete env.TEST_TALLY;
      const selected = ['--selectProjects', 'service', '--testPathIgnorePatterns', leftOut, '--', 'test/'];
      const jest = spawn(process.execPath, [...args, ...selected], { env });
      let output = '';
      jest.stderr.on('data', (data: Buffer) => (output += data.toString()));
      const [code] = (await once(jest, 'exit')) as [number];
      const [, passed] = /^Tests: .*?(\d+) passed/m.exec(output) ?? [];
      report('The HTTP suite behind PgBouncer', { 'tests passed': String(passed), 'exit code': code });
      if (code !== 0) throw new Error(output);
    },
    SUITE_MS,
  );
});
