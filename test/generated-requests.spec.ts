import { forAll, GeneratedRequests } from './support/generated.js';
import { damagedBody, invalidBody, validPlant } from './support/generated-bodies.js';
import { startService, type TestService } from './support/service.js';

/** A few for every test run; `npm run test:fuzz` runs as many as FUZZ_RUNS says. */
const RUNS = 300;

let service: TestService;
let requests: GeneratedRequests;
beforeAll(async () => {
  service = await startService();
  requests = new GeneratedRequests(service);
});
afterAll(async () => {
  requests.close();
  await service.stop();
});

test('Any valid plant is stored and answered as it was sent', () =>
  forAll('Valid plants', validPlant, RUNS, (said) => requests.isStored(said)));

test('Any body that breaks one rule is refused and stores nothing', () =>
  forAll('Invalid bodies', invalidBody, RUNS, ({ bytes }) => requests.isRefused(bytes)));

test('Any damaged body is refused, or stored as JSON.parse reads it', () =>
  forAll('Damaged bodies', damagedBody, RUNS, ({ bytes }) => requests.isEither(bytes)));

test('A body that is cut at any byte is refused, and the whole body is stored', async () => {
  const whole = Buffer.from(
    '{"id":-9223372036854775808,"name":"\\u00e9 \u00e9 \u{1F33F}","tag":"","x":[1.5e-3,{"y":null}]}',
  );
  for (let length = 0; length < whole.length; length++) await requests.isRefused(whole.subarray(0, length));
  await requests.isEither(whole);
});
