import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startService, TOKEN, unusedId, type TestService } from '../support/service.js';

/** Answers that violate the contract. A test asks for them by name, and expects Prism to report them. */
const OUTSIDE: Record<string, [status: number, type: string, body: string]> = {
  'a name of another type': [200, 'application/json', '{"name":5}'],
  'a tag of null': [200, 'application/json', '{"name":"a","tag":null}'],
  'no name': [200, 'application/json', '{"tag":"a"}'],
  'no Plant-Id': [200, 'application/json', '{"name":"a"}'],
  'an error that is not an int32': [400, 'application/json', '{"error":4000000000,"message":"a"}'],
  'an error that is a string': [400, 'application/json', '{"error":"Bad Request","message":"a"}'],
  'a list of messages': [400, 'application/json', '{"error":400,"message":["a"]}'],
  'another media type': [400, 'text/html', '{"error":400,"message":"a"}'],
  'another status': [422, 'application/json', '{"error":422,"message":"a"}'],
  'another status of success': [201, 'application/json', '{"name":"a"}'],
};

let service: TestService;
let upstream: Server;
let prism: ChildProcess;
let proxy: string;

/** Prism's proxy forwards each request, and reports violations of openapi.json in a header. */
beforeAll(async () => {
  service = await startService();
  upstream = createServer((incoming, outgoing) => {
    const name = String(incoming.headers['x-answer']);
    const outside = OUTSIDE[name];
    if (outside !== undefined) {
      const headers = name === 'no Plant-Id' ? {} : { 'Plant-Id': '1' };
      outgoing.writeHead(outside[0], { ...headers, 'Content-Type': outside[1] }).end(outside[2]);
      return;
    }
    const { method, url, headers } = incoming;
    const forwarded = request({ port: service.port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');

  prism = spawn(process.execPath, [
    'test/node_modules/@stoplight/prism-cli/dist/index.js',
    ...['proxy', 'openapi.json', `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`],
    // Forward bad requests too, and listen on a free port.
    ...['--validate-request', 'false', '--port', '0'],
  ]);
  proxy = await new Promise((resolve, reject) => {
    let output = '';
    prism.stdout?.on('data', (data: Buffer) => {
      output += data.toString();
      const address = /listening on (\S+)/.exec(output)?.[1];
      if (address !== undefined) resolve(address);
    });
    prism.once('exit', () => reject(new Error(`Prism ended:\n${output}`)));
  });
});
afterAll(async () => {
  prism.kill();
  upstream.close();
  await service.stop();
});

/** Sends a create through Prism. @returns the answer, with the violations of the response and not of the request. */
async function ask(body: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${proxy}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json', ...headers },
    body,
  });
  const found = JSON.parse(response.headers.get('sl-violations') ?? '[]') as { location: string[] }[];
  const violations = found.filter(({ location }) => location[0] === 'response');
  return { status: response.status, json: (await response.json()) as object, violations };
}

const id = unusedId() % 2n ** 50n;
const STATUSES: [name: string, status: number, body: string, headers?: Record<string, string>][] = [
  ['a plant', 200, `{"id":${id},"name":"Monstera","tag":"indoor"}`],
  ['the same plant again', 200, `{"id":${id},"name":"Monstera","tag":"indoor"}`],
  ['a plant without a tag', 200, `{"id":${id + 1n},"name":""}`],
  ['a plant with more members', 200, `{"id":${id + 2n},"name":"\u{1F33F}","x":{"name":null}}`],
  ['a taken id', 400, `{"id":${id},"name":"Ficus"}`],
  ['an empty object', 400, '{}'],
  ['an array', 400, '[1]'],
  ['an id that is a string', 400, '{"id":"1","name":"a"}'],
  ['a tag of null', 400, '{"id":1,"name":"a","tag":null}'],
  ['text that cannot be stored', 400, '{"id":1,"name":"\\u0000"}'],
  // contract-judge.js covers a body that is too large. Prism reuses the connection after such a body, and answers 500.
  ['another media type', 400, 'a plant', { 'Content-Type': 'text/plain' }],
  ['no token', 401, '{"id":1,"name":"a"}', { Authorization: '' }],
  ['another scheme', 401, '{"id":1,"name":"a"}', { Authorization: 'Basic YTph' }],
  ['a wrong token', 401, '{"id":1,"name":"a"}', { Authorization: 'Bearer nope' }],
];

test.each(STATUSES)('The response to %s conforms: %i', async (...[, status, body, headers]) => {
  const { json, ...answer } = await ask(body, headers);
  expect(answer).toEqual({ status, violations: [] });
  expect(json).toHaveProperty(status === 200 ? 'name' : 'error');
});

test('The response to a failure of the database conforms to openapi.json: 503', async () => {
  await service.sql('ALTER TABLE plants RENAME TO gone');
  expect(await ask('{"id":1,"name":"a"}')).toMatchObject({ status: 503, violations: [] });
  await service.sql('ALTER TABLE gone RENAME TO plants');
});

test.each(Object.keys(OUTSIDE))('A response that violates openapi.json is reported: %s', async (name) => {
  expect((await ask('{"id":1,"name":"a"}', { 'X-Answer': name })).violations).not.toEqual([]);
});
