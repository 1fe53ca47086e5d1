import type fc from 'fast-check';
import { forAll, GeneratedRequests } from '../support/generated.js';
import { damagedBody, invalidBody, validPlant } from '../support/generated-bodies.js';
import { startService, type TestService } from '../support/service.js';

/** The number of bodies of each of the three kinds. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 10_000);
const STEPS = 10;

let service: TestService;
let requests: GeneratedRequests;
beforeAll(async () => {
  service = await startService({ env: { LOG_LEVEL: 'warn' } });
  requests = new GeneratedRequests(service);
});
afterAll(async () => {
  requests.close();
  await service.stop();
});

/** As forAll(), and prints its progress. */
function forMany<T>(title: string, arbitrary: fc.Arbitrary<T>, holds: (value: T) => Promise<void>) {
  const started = performance.now();
  return forAll(title, arbitrary, RUNS, holds, (run) => {
    if (run > 0 && run % Math.ceil(RUNS / STEPS) === 0)
      process.stdout.write(
        `${title}: ${run} of ${RUNS} after ${Math.round((performance.now() - started) / 1000)} s\n`,
      );
  });
}

const TIMEOUT_MS = 60_000 + 100 * RUNS;

test(
  'Any valid plant is stored and answered as it was sent',
  () => forMany('Valid plants', validPlant, (said) => requests.isStored(said)),
  TIMEOUT_MS,
);

test(
  'Any body that breaks one rule is refused and stores nothing',
  () => forMany('Invalid bodies', invalidBody, ({ bytes }) => requests.isRefused(bytes)),
  TIMEOUT_MS,
);

test(
  'Any damaged body is refused, or stored as JSON.parse reads it',
  () => forMany('Damaged bodies', damagedBody, ({ bytes }) => requests.isEither(bytes)),
  TIMEOUT_MS,
);

test('None of these requests is logged as a fault of the service', () => {
  expect(service.logs()).toBe('');
});
