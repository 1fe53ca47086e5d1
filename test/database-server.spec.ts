import { PostgresCluster } from './support/postgres-cluster.js';
import { post } from './support/requests.js';
import { needs } from './support/requirements.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

needs('postgres')('A PostgreSQL server', () => {
  const undo = undoAfterEach();
  let cluster: PostgresCluster;

  beforeAll(async () => {
    cluster = await PostgresCluster.start();
    await cluster.query('CREATE ROLE store LOGIN');
  }, 60_000);

  afterAll(() => cluster.remove());

  /** Starts the service on a new database of the server, whose owner it is. */
  async function startOn(env: Record<string, string> = {}): Promise<TestService> {
    const name = `plants_${unusedId()}`;
    await cluster.query(`CREATE DATABASE ${name} OWNER store`);
    const database = { env: { DATABASE_URL: cluster.url(name, 'store') }, drop: () => Promise.resolve() };
    const service = await startService({ database, env });
    undo(() => service.stop());
    return service;
  }

  /** Changes settings of the server until the end of the test. */
  async function configure(setting: string): Promise<void> {
    const set = async (statement: string) => {
      await cluster.query(statement);
      await cluster.query('SELECT pg_reload_conf()');
    };
    undo(() => set('ALTER SYSTEM RESET ALL'));
    await set(`ALTER SYSTEM SET ${setting}`);
  }

  const create = async (service: TestService, id: bigint, name = 'a') =>
    (await post(service.port, `{"id":${id},"name":"${name}"}`)).status;

  describe('with a synchronous standby that is gone', () => {
    const TIMEOUT = { DATABASE_TIMEOUT_MS: '500' };

    test('a repeat is answered 503 like the create itself, and both 200 once the commit is what it has to be', async () => {
      const service = await startOn(TIMEOUT);
      const [before, id] = [unusedId(), unusedId()];
      expect(await create(service, before)).toBe(200);
      await configure("synchronous_standby_names = 'nobody'");
      expect(await create(service, id)).toBe(503);
      // The row is there, although no standby has it.
      expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
      expect(await create(service, id)).toBe(503);
      expect(await create(service, before)).toBe(503);
      expect(await create(service, before, 'another')).toBe(503);
      await cluster.query('ALTER SYSTEM RESET ALL');
      await cluster.query('SELECT pg_reload_conf()');
      expect(await create(service, id)).toBe(200);
      expect(await create(service, before)).toBe(200);
      expect(await create(service, before, 'another')).toBe(400);
    });
  });
});
