import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import { poolOf } from '../src/database/data-source.js';
import { readiness } from './support/operations.js';
import { until } from './support/patience.js';
import { PostgresCluster } from './support/postgres-cluster.js';
import { Relay } from './support/relay.js';
import { post } from './support/requests.js';
import { needs } from './support/requirements.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const HOUR_MS = 3_600_000;
const SESSIONS = `FROM pg_stat_activity WHERE application_name = 'plant-store' AND datname = $1`;
const SHORT_TIMEOUT = { DATABASE_TIMEOUT_MS: '500' };

needs('postgres', 'openssl')('A PostgreSQL server', () => {
  const undo = undoAfterEach();
  let cluster: PostgresCluster;
  /** The name of the test's database. */
  let name: string;

  beforeAll(async () => {
    cluster = await PostgresCluster.start({ fsync: 'off' });
    await cluster.query('CREATE ROLE store LOGIN');
  });

  afterAll(() => cluster.remove());

  beforeEach(async () => {
    name = `plants_${unusedId()}`;
    await cluster.query(`CREATE DATABASE ${name} OWNER store`);
  });

  const databaseOn = (server: PostgresCluster) => ({
    env: { DATABASE_URL: server.url(name, 'store') },
    drop: () => Promise.resolve(),
  });

  async function start(env: Record<string, string> = {}): Promise<TestService> {
    const service = await startService({ database: databaseOn(cluster), env });
    undo(() => service.stop());
    return service;
  }

  async function migrate(server: PostgresCluster): Promise<void> {
    await (await startService({ database: databaseOn(server) })).stop();
  }

  const addressOf = (port: number, query = '', host = '127.0.0.1') => ({
    DATABASE_URL: `postgres://store@${host}:${port}/${name}${query}`,
  });

  /** Changes a setting of the server until the test ends. @returns a function that resets it earlier. */
  async function configure(setting: string, server = cluster): Promise<() => Promise<void>> {
    const set = async (statement: string) => {
      await server.query(statement);
      const [loaded] = await server.query<{ at: string }>('SELECT pg_conf_load_time()::text AS at');
      await server.query('SELECT pg_reload_conf()');
      const isNew = 'SELECT pg_conf_load_time() > $1::timestamptz AS loaded';
      await until('the setting is loaded', async () => {
        const [now] = await server.query<{ loaded: boolean }>(isNew, [loaded?.at]);
        return now?.loaded === true;
      });
    };
    const reset = () => set('ALTER SYSTEM RESET ALL');
    undo(reset);
    await set(`ALTER SYSTEM SET ${setting}`);
    return reset;
  }

  const create = async (service: TestService, id = unusedId(), plantName = 'a') =>
    (await post(service.port, `{"id":${id},"name":"${plantName}"}`)).status;
  const sessions = async () =>
    (await cluster.query<{ pid: number }>(`SELECT pid ${SESSIONS}`, [name])).map(({ pid }) => pid);

  /** Makes the pool open all of its sessions. */
  const fillPool = (service: TestService) =>
    Promise.all(Array.from({ length: 4 }, () => service.sql('SELECT pg_sleep(0.2)')));

  /** Moves performance.now() forward by an hour until the test ends. */
  function laterByAnHour(): void {
    const now = performance.now.bind(performance);
    const later = jest.spyOn(performance, 'now').mockImplementation(() => now() + HOUR_MS);
    undo(() => later.mockRestore());
  }

  const timesLogged = (service: TestService, message: string) => service.logs().split(message).length - 1;

  describe('without its synchronous standby', () => {
    /** A commit waits for standbys only once PostgreSQL's checkpointer, too, has read the setting. */
    async function waitForNobody(service: TestService): Promise<() => Promise<void>> {
      const reset = await configure("synchronous_standby_names = 'nobody'");
      await until('a create fails', async () => (await create(service)) === 503);
      return reset;
    }

    test('makes the service answer 503 to a create and its repeats until the standby is not needed', async () => {
      // What must succeed goes to a service whose time limit no busy machine reaches.
      const [service, patient] = [await start(SHORT_TIMEOUT), await start()];
      const [before, id] = [unusedId(), unusedId()];
      expect(await create(patient, before)).toBe(200);
      const reset = await waitForNobody(service);
      expect(await create(service, id)).toBe(503);
      // The row is visible, but no standby has it.
      expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
      expect(await create(service, id)).toBe(503);
      expect(await create(service, before)).toBe(503);
      expect(await create(service, before, 'another')).toBe(503);
      await reset();
      expect(await create(patient, id)).toBe(200);
      expect(await create(patient, before)).toBe(200);
      expect(await create(patient, before, 'another')).toBe(400);
    });

    test('makes the service answer 503 to a create whose wait an administrator cancels', async () => {
      const service = await start({ DATABASE_TIMEOUT_MS: '2000' });
      await until('a create succeeds', async () => (await create(service)) === 200);
      await waitForNobody(service);
      const canceling = setInterval(() => {
        const waiting = `SELECT pg_cancel_backend(pid) ${SESSIONS} AND wait_event = 'SyncRep'`;
        cluster.query(waiting, [name]).catch(() => undefined);
      }, 50);
      undo(() => clearInterval(canceling));
      expect(await create(service)).toBe(503);
    });

    test('makes the service not ready after a failed create until a commit succeeds', async () => {
      const service = await start(SHORT_TIMEOUT);
      const reset = await waitForNobody(service);
      // The failure is too old to count by itself.
      laterByAnHour();
      expect(await readiness(service)).toBe(503);
      await reset();
      await until('the service is ready', async () => (await readiness(service)) === 200);
    });
  });

  describe('beside a second one', () => {
    let second: PostgresCluster;

    beforeAll(async () => {
      second = await PostgresCluster.start({ fsync: 'off' });
      await second.query('CREATE ROLE store LOGIN');
    });

    afterAll(() => second.remove());

    /** Makes a database of the same name on the second server, and migrates it. */
    async function copyToSecond(): Promise<void> {
      await second.query(`CREATE DATABASE ${name} OWNER store`);
      await migrate(second);
    }

    const has = async (server: PostgresCluster, id: bigint) =>
      (await server.query(`SELECT id FROM plants WHERE id = ${id}`, [], name)).length === 1;

    test('loses its sessions when it becomes read-only, and the create is stored on the second', async () => {
      const relay = await Relay.start(cluster.port);
      undo(() => relay.stop());
      const service = await start(addressOf(relay.port));
      await copyToSecond();
      await fillPool(service);
      await configure('default_transaction_read_only = on');
      relay.leadTo(second.port);
      const id = unusedId();
      expect(await create(service, id)).toBe(200);
      expect(await has(second, id)).toBe(true);
    });

    test('loses its sessions to a readiness check, which finds the writable server', async () => {
      const relay = await Relay.start(cluster.port);
      undo(() => relay.stop());
      const service = await start(addressOf(relay.port));
      await copyToSecond();
      await fillPool(service);
      await configure('default_transaction_read_only = on');
      await until('the service is not ready', async () => (await readiness(service)) === 503);
      relay.leadTo(second.port);
      expect(await readiness(service)).toBe(200);
    });

    test('is used if it is the writable one of the hosts in DATABASE_URL', async () => {
      await copyToSecond();
      await migrate(cluster);
      const hosts = `127.0.0.1:1,127.0.0.1:${cluster.port},127.0.0.1:${second.port}`;
      const reset = await configure('default_transaction_read_only = on');
      const service = await start({ DATABASE_URL: `postgres://store@${hosts}/${name}` });
      const ids = [unusedId(), unusedId()] as const;
      expect(await create(service, ids[0])).toBe(200);
      expect(await has(second, ids[0])).toBe(true);
      await reset();
      await configure('default_transaction_read_only = on', second);
      await until('a create succeeds', async () => (await create(service, ids[1])) === 200);
      expect(await has(cluster, ids[1])).toBe(true);
    });
  });

  test('gets a new session when one reaches its maximum age', async () => {
    const service = await start();
    await create(service);
    const before = await sessions();
    await create(service);
    expect(await sessions()).toEqual(before);
    laterByAnHour();
    await create(service);
    const after = await sessions();
    expect(after.filter((pid) => !before.includes(pid))).toHaveLength(1);
    expect(after).toHaveLength(before.length);
  });

  describe('makes the service not ready if it could not store a create:', () => {
    const CHANGES: [string, string, string][] = [
      ['a missing right to insert', 'REVOKE INSERT ON plants FROM store', 'GRANT INSERT ON plants TO store'],
      ['a missing right to read', 'REVOKE SELECT ON plants FROM store', 'GRANT SELECT ON plants TO store'],
      [
        'a missing column',
        'ALTER TABLE plants RENAME tag TO other',
        'ALTER TABLE plants RENAME other TO tag',
      ],
      ['a missing table', 'ALTER TABLE plants RENAME TO other', 'ALTER TABLE other RENAME TO plants'],
      [
        'a missing unique index',
        'ALTER TABLE plants DROP CONSTRAINT plants_pkey',
        'ALTER TABLE plants ADD CONSTRAINT plants_pkey PRIMARY KEY (id)',
      ],
    ];

    test.each(CHANGES)('%s', async (_, change, undoing) => {
      const service = await start();
      expect(await readiness(service)).toBe(200);
      await cluster.query('ALTER TABLE plants OWNER TO plant; GRANT ALL ON plants TO store', [], name);
      await cluster.query(change, [], name);
      expect(await readiness(service)).toBe(503);
      expect(await readiness(service)).toBe(503);
      await cluster.query(undoing, [], name);
      expect(await readiness(service)).toBe(200);
      expect(timesLogged(service, 'Not ready')).toBe(1);
    });

    test('a read-only server', async () => {
      const service = await start();
      expect(await readiness(service)).toBe(200);
      const reset = await configure('default_transaction_read_only = on');
      await until('the service is not ready', async () => (await readiness(service)) === 503);
      expect(await create(service)).toBe(503);
      laterByAnHour();
      expect(await readiness(service)).toBe(503);
      await reset();
      await until('the service is ready', async () => (await readiness(service)) === 200);
    });

    test('a table that is locked against writes', async () => {
      const service = await start(SHORT_TIMEOUT);
      const holder = await cluster.connect(name);
      undo(() => holder.end());
      await holder.query('BEGIN; LOCK TABLE plants IN SHARE MODE');
      expect(await readiness(service)).toBe(503);
      await holder.query('ROLLBACK');
      expect(await readiness(service)).toBe(200);
    });

    test('with a check that writes nothing', async () => {
      const service = await start();
      const nextTransaction = () => cluster.query('SELECT pg_snapshot_xmax(pg_current_snapshot()) AS xmax');
      const before = await nextTransaction();
      for (let round = 0; round < 10; round++) expect(await readiness(service)).toBe(200);
      expect(await nextTransaction()).toEqual(before);
    });
  });

  test('does not delay answers or readiness if the wall clock is set back', async () => {
    const service = await start(SHORT_TIMEOUT);
    await until('a create succeeds', async () => (await create(service)) === 200);
    const holder = await cluster.connect(name);
    undo(() => holder.end());
    await holder.query('BEGIN; LOCK TABLE plants');
    const answers = Array.from({ length: 8 }, () => create(service));
    const now = Date.now.bind(Date);
    const earlier = jest.spyOn(Date, 'now').mockImplementation(() => now() - HOUR_MS);
    undo(() => earlier.mockRestore());
    expect(await Promise.all(answers)).toEqual(Array(8).fill(503));
    await holder.query('ROLLBACK');
    await until('the service is ready', async () => (await readiness(service)) === 200);
  });

  test('that closes idle connections is logged once for each outage', async () => {
    const service = await start();
    const pool = () => poolOf(service.app.get(DataSource));
    for (let round = 0; round < 2; round++) {
      await fillPool(service);
      await cluster.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`, [name]);
      await until('all sessions are lost', () => pool()?.totalCount === 0);
    }
    expect(timesLogged(service, 'An idle database connection was lost')).toBe(1);
    expect(await create(service)).toBe(200);
  });

  describe('through TLS', () => {
    let folder: string;
    const pem = (part: string) => join(folder, `${part}.pem`);

    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'plant-store-tls-'));
      const request = 'req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost';
      const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', pem('key'), '-out', pem('cert')];
      execFileSync('openssl', [...request.split(' '), ...names], { stdio: 'ignore' });
    });

    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    async function startFront(): Promise<Relay> {
      const relay = await Relay.start(cluster.port, {
        cert: readFileSync(pem('cert'), 'utf8'),
        key: readFileSync(pem('key'), 'utf8'),
      });
      undo(() => relay.stop());
      return relay;
    }

    test('is told to cancel a statement over TLS too', async () => {
      const { port } = await startFront();
      const query = `?sslmode=verify-full&sslrootcert=${pem('cert')}`;
      const service = await start({ ...addressOf(port, query, 'localhost'), ...SHORT_TIMEOUT });
      const holder = await cluster.connect(name);
      undo(() => holder.end());
      await holder.query('BEGIN; LOCK TABLE plants');
      expect(await create(service)).toBe(503);
      await until('no session works', async () => {
        const working = await cluster.query(`SELECT pid ${SESSIONS} AND state = 'active'`, [name]);
        return working.length === 0;
      });
    });

    test.each([
      ['of an unknown issuer', 'localhost', '?sslmode=verify-full', 'self-signed certificate'],
      ['of another host', '127.0.0.1', '?sslmode=verify-full&sslrootcert=', 'does not match'],
    ])('with a certificate %s ends the start with the reason', async (_, host, query, reason) => {
      const { port } = await startFront();
      const address = addressOf(port, query.replace(/=$/, `=${pem('cert')}`), host);
      await expect(start(address)).rejects.toThrow(reason);
    });

    test('without TLS support ends the start with the reason', async () => {
      await expect(start(addressOf(cluster.port, '?sslmode=verify-full'))).rejects.toThrow(
        'does not support SSL',
      );
    });
  });

  test('with an encoding other than UTF-8 ends the start with the reason', async () => {
    await cluster.query(`DROP DATABASE ${name}`);
    const latin1 = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    await cluster.query(`CREATE DATABASE ${name} OWNER store ${latin1}`);
    await expect(start()).rejects.toThrow(`${name} has the encoding LATIN1`);
  });

  test('that gets another schema later does not hide the plants from the next start', async () => {
    await cluster.query('GRANT CREATE ON SCHEMA public TO store', [], name);
    const first = await start();
    const id = unusedId();
    expect(await create(first, id)).toBe(200);
    await first.stop();
    await cluster.query('CREATE SCHEMA AUTHORIZATION store', [], name);
    const second = await start();
    expect(await create(second, id, 'another')).toBe(400);
    expect(second.logs()).toContain(`"database":"${name}","schema":"public"`);
  });
});
