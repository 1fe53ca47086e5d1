import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { load } from 'js-yaml';
import { Load } from '../support/load.js';
import { PostgresCluster } from '../support/postgres-cluster.js';
import { PATIENCE_MS, until } from '../support/patience.js';
import { Prometheus } from '../support/prometheus.js';
import { post } from '../support/requests.js';
import { needs } from '../support/requirements.js';
import { ServiceProcess } from '../support/service-process.js';
import { undoAfterEach } from '../support/undo.js';

/** As long as the longest window of the rules, and longer than any window plus its `for`. */
const QUIET_MS = 50_000;
const POLL_MS = 100;
const CONNECTIONS = 4;
/** The service has no known bugs, so the test adds two: an id that fails, and one that leaks. */
const FAILING_ID = 13;
const LEAKING_ID = 14;
const LEAK_MEBIBYTES = 450;
const BUGS = `const original = BigInt.prototype.toString;
BigInt.prototype.toString = function (radix) {
  if (this === ${FAILING_ID}n) throw new Error('a bug');
  if (this === ${LEAKING_ID}n) globalThis.leak ??= Buffer.alloc(${LEAK_MEBIBYTES} * 1024 * 1024, 1);
  return original.call(this, radix);
};`;

interface Setup {
  cluster: PostgresCluster;
  service: ServiceProcess;
  prometheus: Prometheus;
  load: Load;
}

interface Alerts {
  groups: { rules: { alert: string }[] }[];
}
interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}
const rules = load(readFileSync('deploy/prometheus/alerts.yml', 'utf8')) as Alerts;
const alerts = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
const { panels } = JSON.parse(readFileSync('deploy/grafana/dashboard.json', 'utf8')) as Dashboard;

const createWith = (service: ServiceProcess, id: number, headers = {}) =>
  post(service.port, `{"id":${id},"name":"plant ${id}"}`, headers);

needs('postgres', 'prometheus')('In a real Prometheus', () => {
  const undo = undoAfterEach();

  async function begin(env: Record<string, string> = {}): Promise<Setup> {
    const cluster = await PostgresCluster.start();
    undo(() => cluster.remove());
    const service = await ServiceProcess.start({
      DATABASE_URL: cluster.url(),
      METRICS: 'on',
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(BUGS)}`,
      ...env,
    });
    undo(() => service.end('SIGKILL'));
    const prometheus = await Prometheus.start(service.port);
    undo(() => prometheus.stop());
    // Before its first scrape, Prometheus considers the service down.
    await until('the service is up', async () => (await prometheus.range('service_ready == 1')).length > 0);
    await until('no alert fires', async () => (await prometheus.firing()).length === 0);
    const load = new Load(service.port, 1_000);
    undo(() => load.stop());
    return { cluster, service, prometheus, load };
  }

  /** Makes each later statement take this long. */
  const slowDown = ({ cluster }: Setup, seconds: number) =>
    cluster.query(`
      CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(${seconds}); RETURN NULL; END';
      CREATE TRIGGER take_time AFTER INSERT ON plants EXECUTE FUNCTION take_time()`);

  async function lockTable({ cluster }: Setup): Promise<() => Promise<void>> {
    const holder = await cluster.connect();
    undo(() => holder.end());
    await holder.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    return async () => {
      await holder.query('ROLLBACK');
    };
  }

  /** Repeats a step until the test ends. */
  function repeat(step: () => unknown): void {
    const over = new AbortController();
    const running = (async () => {
      while (!over.signal.aborted) {
        await step();
        await delay(POLL_MS);
      }
    })();
    undo(async () => {
      over.abort();
      await running;
    });
  }

  /** What makes each alert fire. */
  const CAUSES: Record<string, { env?: Record<string, string>; begins: (setup: Setup) => unknown }> = {
    PlantStoreDown: { begins: ({ service }) => service.end('SIGKILL') },
    // There are no creates, because a gateway sends none to a replica that is not ready.
    PlantStoreNotReady: { begins: ({ cluster }) => cluster.stopAtOnce() },
    PlantStoreUnavailable: {
      begins: async ({ cluster, load }) => {
        await cluster.stopAtOnce();
        load.start(CONNECTIONS);
      },
    },
    // One failure is enough.
    PlantStoreFailing: {
      begins: async ({ service }) => expect((await createWith(service, FAILING_ID)).status).toBe(500),
    },
    PlantStoreRestarting: {
      begins: async ({ cluster, service, prometheus }) => {
        // Wait for each start to be scraped, however long it takes.
        const starts = async () =>
          (await prometheus.range('changes(process_start_time_seconds[1h])'))[0]?.values.at(-1);
        for (let restarts = 1; restarts <= 3; restarts++) {
          await service.end('SIGKILL');
          const { port } = service;
          await until('Prometheus sees the restart', async () => {
            // Spawned again if another program's connection had the port for a moment.
            if (!service.isRunning) {
              service = await ServiceProcess.spawn({ DATABASE_URL: cluster.url(), METRICS: 'on' }, port);
              const started = service;
              undo(() => started.end('SIGKILL'));
            }
            return ((await starts()) ?? 0) >= restarts;
          });
          // The metric has whole seconds, so that two starts in one second are one to Prometheus.
          await delay(1_100);
        }
      },
    },
    PlantStoreOverloaded: {
      env: { DATABASE_TIMEOUT_MS: '600000' },
      begins: async (setup) => {
        const unlock = await lockTable(setup);
        setup.load.start(1_200);
        // Unlock before the load stops, which waits for its answers.
        undo(unlock);
      },
    },
    // A CPU limit that is too low has the same effect.
    PlantStoreBusy: {
      begins: ({ service }) =>
        repeat(async () => {
          service.child.kill('SIGSTOP');
          await delay(300);
          service.child.kill('SIGCONT');
        }),
    },
    // These three are independent and take long to fire, so they share a test.
    'PlantStoreMemory, PlantStoreRefusesTokens, PlantStoreSlow': {
      begins: async (setup) => {
        await createWith(setup.service, LEAKING_ID);
        await slowDown(setup, 0.7);
        setup.load.start(1);
        repeat(() => createWith(setup.service, 1, { Authorization: 'Bearer rotated-away' }));
      },
    },
  };

  test('every alert is tested', () => {
    const tested = Object.keys(CAUSES).flatMap((names) => names.split(', '));
    expect(tested.sort()).toEqual([...alerts].sort());
  });

  test.each(Object.entries(CAUSES))(
    'an alert fires after its fault, and not before: %s',
    async (names, { env, begins }) => {
      const setup = await begin(env);
      await begins(setup);
      await until(`${names} fires`, async () => {
        const firing = await setup.prometheus.firing();
        return names.split(', ').every((name) => firing.includes(name));
      });
    },
    3 * PATIENCE_MS,
  );

  test(
    'no alert fires while nothing is wrong',
    async () => {
      const { prometheus, load } = await begin();
      load.start(CONNECTIONS);
      const fired = new Set<string>();
      for (let waited = 0; waited < QUIET_MS; waited += POLL_MS) {
        for (const alert of await prometheus.firing()) fired.add(alert);
        await delay(POLL_MS);
      }
      await load.stop();
      expect([...fired]).toEqual([]);
      expect(load.acknowledged.size).toBeGreaterThan(0);
    },
    3 * PATIENCE_MS,
  );

  test(
    'every panel of the dashboard has data when creates succeed and fail in every way',
    async () => {
      const setup = await begin({ DATABASE_POOL_SIZE: '2' });
      const { service, prometheus, load } = setup;
      load.start(CONNECTIONS);
      repeat(() => createWith(service, 1));
      repeat(() => post(service.port, '{"id":1,"name":"another"}'));
      repeat(() => createWith(service, 1, { Authorization: undefined }));
      repeat(() => createWith(service, FAILING_ID));
      const unlock = await lockTable(setup);
      const shows = (expr: string) =>
        until(`Prometheus has ${expr}`, async () =>
          (await prometheus.range(expr)).some(({ values }) => values.some((value) => value > 0)),
        );
      await shows('plants_creates_total{outcome="unavailable"}');
      await shows('rate(http_request_duration_seconds_count{status="503"}[15s])');
      // At first all creates may be in the statements that the lock holds.
      await shows('plants_waiting_creates');
      await unlock();
      await shows('rate(plants_creates_total{outcome="repeated"}[15s])');

      const empty: string[] = [];
      for (const { title, targets } of panels) {
        const results = await Promise.all(
          targets.map(({ expr }) =>
            prometheus.range(expr.replaceAll('$__rate_interval', '15s').replaceAll('$instance', '.*')),
          ),
        );
        for (const [index, series] of results.entries()) {
          const isDrawn = series.some(({ values }) => values.some(Number.isFinite));
          if (!isDrawn) empty.push(`${title}, query ${index + 1}`);
        }
        if (!results.flat().some(({ values }) => values.some((value) => value > 0)))
          empty.push(`${title}: all zero`);
        const of = (label: string) =>
          results
            .flat()
            .filter(({ values }) => values.some((value) => value > 0))
            .map(({ metric }) => metric[label])
            .sort();
        if (title === 'Creates by outcome')
          expect(of('outcome')).toEqual(['created', 'refused', 'repeated', 'unavailable']);
        if (title === 'Responses by status')
          expect(of('status')).toEqual(['200', '400', '401', '500', '503']);
      }
      expect(empty).toEqual([]);
    },
    3 * PATIENCE_MS,
  );
});
