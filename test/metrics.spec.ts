import { METHODS } from 'node:http';
import { DataSource } from 'typeorm';
import { readiness } from './support/operations.js';
import { exchange, post } from './support/requests.js';
import { startService, unusedId, type TestService } from './support/service.js';

const plant = (id = unusedId(), name = 'a') => `{"id":${id},"name":"${name}"}`;

let service: TestService;
beforeAll(async () => {
  // While a test holds every connection, the check for `service_ready` waits until this time limit.
  const env = { METRICS: 'on', LOG_LEVEL: 'warn', DATABASE_TIMEOUT_MS: '20000' };
  service = await startService({ env });
});
afterAll(() => service.stop());

/** @returns the value of every series, by its name and labels. */
async function readMetrics(): Promise<Map<string, number>> {
  const response = await fetch(`${service.url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const [, series, value] = /^(\S+(?:\{.*\})?) (\S+)$/.exec(line) as unknown as [string, string, string];
      return [series, Number(value)];
    }),
  );
}

/** @returns how much each of the series grew while `act` ran. */
async function growthOf(names: string[], act: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await readMetrics();
  await act();
  const after = await readMetrics();
  return Object.fromEntries(names.map((name) => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)]));
}

test('No client can make series: unknown paths, unusual methods and broken requests share one label', async () => {
  const paths = (from: number) => Array.from({ length: 1_000 }, (_, index) => `/x${from + index}`);
  const odd = async (from: number, methods: string[]) => {
    for (const path of paths(from)) await fetch(service.url + path);
    for (const method of [...methods, `INVENTED${from}`, 'get']) {
      await exchange(service.port, [`${method} /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`]);
    }
    for (const path of ['/PLANTS', '/plants/', `/plants?${from}`, `//plants${from}`, '/%70lants', '/%']) {
      await post(service.port, plant(), {}, path);
    }
  };
  await odd(0, ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
  // Reading the metrics makes a series too.
  await readMetrics();
  const before = await readMetrics();
  await odd(
    1_000,
    METHODS.filter((method) => method !== 'HEAD'),
  );
  const after = await readMetrics();
  // A kind of garbage collection has series from the first time that it happens, whoever sends what.
  const collection =
    /^nodejs_gc_duration_seconds_\w+\{(?:le="[\d.]+",|le="\+Inf",)?kind="(?:major|minor|incremental|weakcb)"\}$/;
  const made = (metrics: Map<string, number>) =>
    [...metrics.keys()].filter((series) => !collection.test(series)).sort();
  expect(made(after)).toEqual(made(before));
  expect(
    after.get('http_request_duration_seconds_count{method="GET",route="unmatched",status="404"}'),
  ).toBeGreaterThanOrEqual(2_000);
});

test('Requests are counted by method, route and status', async () => {
  const count = (status: number) =>
    `http_request_duration_seconds_count{method="POST",route="/plants",status="${status}"}`;
  const growth = await growthOf([count(200), count(400), count(401)], async () => {
    await post(service.port, plant());
    await post(service.port, '{}');
    await post(service.port, '{', {});
    await post(service.port, '', { Authorization: undefined });
  });
  expect(growth).toEqual({ [count(200)]: 1, [count(400)]: 2, [count(401)]: 1 });
});

test('Every declared response has its series from the start', async () => {
  const fresh = await startService({ env: { METRICS: 'on' } });
  try {
    const text = await (await fetch(`${fresh.url}/metrics`)).text();
    for (const status of [200, 400, 401, 500, 503])
      expect(text).toContain(
        `http_request_duration_seconds_count{method="POST",route="/plants",status="${status}"} 0\n`,
      );
  } finally {
    await fresh.stop();
  }
});

test('service_ready agrees with /health/ready', async () => {
  const ready = async () => [await readiness(service), (await readMetrics()).get('service_ready')];
  expect(await ready()).toEqual([200, 1]);
  await service.sql('ALTER TABLE plants RENAME TO hidden');
  try {
    expect(await ready()).toEqual([503, 0]);
  } finally {
    await service.sql('ALTER TABLE hidden RENAME TO plants');
  }
});

test('Creates are counted by their outcome', async () => {
  const outcomes = ['created', 'repeated', 'refused', 'unavailable'].map(
    (outcome) => `plants_creates_total{outcome="${outcome}"}`,
  );
  const growth = await growthOf(outcomes, async () => {
    const id = unusedId();
    await post(service.port, plant(id));
    await post(service.port, plant(id));
    await post(service.port, plant(id));
    await post(service.port, plant(id, 'another'));
    await service.sql('ALTER TABLE plants RENAME TO hidden');
    await post(service.port, plant());
    await service.sql('ALTER TABLE hidden RENAME TO plants');
  });
  expect(Object.values(growth)).toEqual([1, 2, 1, 1]);
});

test('The rows of each commit are counted, and so are waiting creates and statements', async () => {
  const CREATES = 20;
  const { options } = service.app.get(DataSource);
  const poolSize = options.poolSize ?? 0;
  const connections = Array.from({ length: poolSize }, () => service.app.get(DataSource).createQueryRunner());
  for (const connection of connections) await connection.connect();

  const growth = await growthOf(['plants_batch_rows_sum', 'plants_batch_rows_count'], async () => {
    const answers = Promise.all(Array.from({ length: CREATES }, () => post(service.port, plant())));
    let waiting: Map<string, number>;
    do waiting = await readMetrics();
    while ((waiting.get('plants_waiting_creates') ?? 0) < CREATES - 2);
    expect(waiting.get('database_pool_connections')).toBe(poolSize);
    expect(waiting.get('database_pool_idle_connections')).toBe(0);
    expect(waiting.get('database_pool_waiting')).toBeGreaterThan(0);
    for (const connection of connections) await connection.release();
    for (const { status } of await answers) expect(status).toBe(200);
  });
  expect(growth.plants_batch_rows_sum).toBe(CREATES);
  expect(growth.plants_batch_rows_count).toBeLessThan(CREATES);
  const after = await readMetrics();
  expect(after.get('plants_waiting_creates')).toBe(0);
  expect(after.get('database_pool_waiting')).toBe(0);
  expect(after.get('database_pool_idle_connections')).toBeGreaterThan(0);
});

test.each(['nodejs_eventloop_lag_p99_seconds', 'process_resident_memory_bytes', 'process_cpu_seconds_total'])(
  '%s is measured',
  async (name) => {
    expect((await readMetrics()).get(name)).toBeGreaterThan(0);
  },
);

test('There are no metrics unless METRICS=on', async () => {
  const closed = await startService();
  try {
    expect((await fetch(`${closed.url}/metrics`)).status).toBe(404);
  } finally {
    await closed.stop();
  }
});
