import { setTimeout as delay } from 'node:timers/promises';
import { createTestDatabase, onServer, TEST_CITUS_URL, type TestDatabase } from './support/database.js';
import { metric, readiness } from './support/operations.js';
import { post } from './support/requests.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

// The CI does not install Citus, so it skips this suite silently.
(TEST_CITUS_URL === undefined ? describe.skip : describe)('A Citus cluster', () => {
  const undo = undoAfterEach();
  let database: TestDatabase;
  let coordinator: string;
  let worker: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    coordinator = database.env.DATABASE_URL as string;
    const [node] = await onServer(
      coordinator,
      'SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid LIMIT 1',
    );
    const url = new URL(coordinator);
    url.host = `${String(node?.nodename)}:${String(node?.nodeport)}`;
    worker = url.href;
  });

  afterAll(() => database.drop());

  async function startAt(url: string): Promise<TestService> {
    const service = await startService({
      database: { env: { DATABASE_URL: url }, drop: () => Promise.resolve() },
      env: { METRICS: 'on' },
    });
    undo(() => service.stop());
    return service;
  }

  /** Counts two-phase commits. A statement over several shards leaves a record of one. */
  const twoPhaseCommits = async (url: string) =>
    Number((await onServer(url, 'SELECT count(*) FROM pg_dist_transaction'))[0]?.count);

  test.each([
    ['the coordinator', () => coordinator],
    ['a worker', () => worker],
  ])('lets a replica at %s store plants in every shard, with one statement for each', async (_, url) => {
    const service = await startAt(url());
    const before = await twoPhaseCommits(url());
    const ids = Array.from({ length: 64 }, unusedId);
    const send = () => Promise.all(ids.map((id) => post(service.port, `{"id":${id},"name":"a"}`)));
    for (let time = 1; time <= 2; time++) {
      expect((await send()).map(({ status }) => status)).toEqual(Array(64).fill(200));
    }
    expect(await rowOf(service, ids[0] as bigint)).toMatchObject({ name: 'a' });
    expect(await metric(service, 'plants_batch_rows_count')).toBeGreaterThanOrEqual(4);
    expect(await twoPhaseCommits(url())).toBeLessThanOrEqual(before);
  });

  test('makes a replica at a worker wait for a missing migration and say where to run it', async () => {
    await onServer(coordinator, "UPDATE migrations SET name = 'Later' || name");
    const restored = () => onServer(coordinator, 'UPDATE migrations SET name = substr(name, 6)');
    let isRestored = false;
    undo(async () => {
      if (!isRestored) await restored();
    });
    const starting = startAt(worker);
    await delay(1_000);
    await restored();
    isRestored = true;
    const service = await starting;
    expect(service.logs()).toContain('Migrate at the coordinator');
    expect(await readiness(service)).toBe(200);
  });
});
