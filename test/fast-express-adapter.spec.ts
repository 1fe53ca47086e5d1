import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { PATIENCE_MS } from './support/patience.js';
import { startService, TOKEN, type TestService } from './support/service.js';

let service: TestService;
let native: Server;
/** A server with the same listeners that makes Node.js's own request and response objects. */
let stock: Server;

beforeAll(async () => {
  service = await startService({ env: { METRICS: 'on', BODY_LIMIT: '1kb' } });
  native = service.app.getHttpServer();
  stock = createServer({ requireHostHeader: false, keepAliveTimeout: native.keepAliveTimeout });
  stock.maxHeadersCount = native.maxHeadersCount;
  for (const event of native.eventNames() as string[]) {
    stock.removeAllListeners(event);
    for (const listener of native.listeners(event)) stock.on(event, listener as () => void);
  }
  stock.listen(0, '127.0.0.1');
  await once(stock, 'listening');
});
afterAll(async () => {
  stock.close();
  stock.closeAllConnections();
  await service.stop();
});

/** @returns every byte until the service ends the connection, with the value of Date replaced. */
function answerOf(server: Server, request: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('not ended')));
    socket.on('connect', () => socket.write(request));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      resolve(
        Buffer.concat(chunks)
          .toString('latin1')
          .replaceAll(/^Date: .*$/gm, 'Date: now'),
      );
    });
  });
}

const HOST = 'Host: localhost\r\nX-Request-Id: one-of-both\r\nConnection: close\r\n';
const AUTHORIZATION = `Authorization: Bearer ${TOKEN}\r\n`;
const JSON_TYPE = 'Content-Type: application/json\r\n';
const PLANT = '{"id":1,"name":"Monstera","tag":"indoor"}';

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;

const create = (body: string | Uint8Array, headers = AUTHORIZATION + JSON_TYPE) =>
  Buffer.concat([
    Buffer.from(
      `POST /plants HTTP/1.1\r\n${HOST}${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
    ),
    Buffer.from(body as string),
  ]);

const REQUESTS: [string, number, string | Uint8Array][] = [
  ['a plant', 200, create(PLANT)],
  ['a plant without a tag', 200, create('{"id":2,"name":"Ficus \u{1F33F}"}')],
  ['a taken id', 400, create('{"id":1,"name":"another"}')],
  ['a body in gzip', 200, create(gzipSync(PLANT), `${AUTHORIZATION}${JSON_TYPE}Content-Encoding: gzip\r\n`)],
  [
    'a body in chunks',
    200,
    `POST /plants HTTP/1.1\r\n${HOST}${AUTHORIZATION}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n` +
      `${PLANT.length.toString(16)}\r\n${PLANT}\r\n0\r\n\r\n`,
  ],
  ['Expect: 100-continue', 100, create(PLANT, `${AUTHORIZATION}${JSON_TYPE}Expect: 100-continue\r\n`)],
  ['HTTP/1.0', 200, Buffer.from(create(PLANT).toString('latin1').replace('HTTP/1.1', 'HTTP/1.0'), 'latin1')],
  ['no token', 401, create(PLANT, JSON_TYPE)],
  ['a wrong token', 401, create(PLANT, `Authorization: Bearer wrong\r\n${JSON_TYPE}`)],
  ['two tokens', 400, create(PLANT, AUTHORIZATION + AUTHORIZATION + JSON_TYPE)],
  ['another scheme', 401, create(PLANT, `Authorization: Basic eDp5\r\n${JSON_TYPE}`)],
  ['no media type', 400, create(PLANT, AUTHORIZATION)],
  ['another media type', 400, create(PLANT, `${AUTHORIZATION}Content-Type: text/plain\r\n`)],
  [
    'another charset',
    400,
    create(PLANT, `${AUTHORIZATION}Content-Type: application/json; charset=latin1\r\n`),
  ],
  ['an unknown content coding', 400, create(PLANT, `${AUTHORIZATION}${JSON_TYPE}Content-Encoding: zstd\r\n`)],
  ['bytes that are not gzip', 400, create(PLANT, `${AUTHORIZATION}${JSON_TYPE}Content-Encoding: gzip\r\n`)],
  ['a body beyond the limit', 400, create(`{"id":3,"name":"${'a'.repeat(1024)}"}`)],
  ['bytes that are not UTF-8', 400, create(Buffer.from('{"id":3,"name":"\xff"}', 'latin1'))],
  ['an empty body', 400, create('')],
  ['a body that is not JSON', 400, create('{"id":3,')],
  ['a body that is not an object', 400, create('[]')],
  ['a missing field', 400, create('{"id":3}')],
  ['wrong types', 400, create('{"id":"3","name":3,"tag":null}')],
  ['an id out of range', 400, create('{"id":9223372036854775808,"name":"a"}')],
  ['U+0000', 400, create('{"id":3,"name":"\\u0000"}')],
  ['a name that appears twice', 400, create('{"id":3,"id":4,"name":"a"}')],
  [
    'two requests on one connection',
    200,
    Buffer.concat([
      Buffer.from(create(PLANT).toString().replace('Connection: close\r\n', '')),
      create(PLANT),
    ]),
  ],
  ['another method', 405, get('/plants')],
  ['OPTIONS', 204, `OPTIONS /plants HTTP/1.1\r\n${HOST}\r\n`],
  ['TRACE', 405, `TRACE /plants HTTP/1.1\r\n${HOST}\r\n`],
  ['CONNECT', 405, `CONNECT localhost:80 HTTP/1.1\r\n${HOST}\r\n`],
  ['another path', 404, get('/plants/')],
  ['a path that cannot be decoded', 404, get('/%ff')],
  ['an absolute target', 200, `GET http://localhost/health/live HTTP/1.1\r\n${HOST}\r\n`],
  ['HEAD', 200, `HEAD /openapi.json HTTP/1.1\r\n${HOST}\r\n`],
  ['the document', 200, get('/openapi.json')],
  ['the document in YAML', 200, get('/openapi.yaml')],
  ['the root', 308, get('/')],
  ['the page', 200, get('/docs')],
  ['a script of the page', 200, get('/docs/initializer.js')],
  ['a part of a style sheet', 200, get('/docs/swagger-ui.css', 'Range: bytes=0-9\r\n')],
  ['a style sheet in the cache of the client', 304, get('/docs/swagger-ui.css', 'If-None-Match: *\r\n')],
  ['live', 200, get('/health/live')],
  ['ready', 200, get('/health/ready')],
  ['no Host', 400, 'GET /docs HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ['an unknown expectation', 417, get('/docs', 'Expect: the-unexpected\r\n')],
  ['two lengths', 400, `POST /plants HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\na`],
  ['headers too large', 431, get('/docs', `X-Large: ${'a'.repeat(20_000)}\r\n`)],
  ['bytes that are not HTTP', 400, 'hello\r\n\r\n'],
];

test.each(REQUESTS)('The adapter does not change the answer: %s', async (_, status, request) => {
  const bytes = Buffer.from(request as string);
  const answer = await answerOf(native, bytes);
  expect(Number(answer.split(' ')[1])).toBe(status);
  expect(await answerOf(stock, bytes)).toBe(answer);
});

/** With a query, Express routes the request itself. Nothing else reads the query. */
const withQuery = (request: Buffer) =>
  Buffer.from(request.toString('latin1').replaceAll(/^([A-Z]+ \/\S*) /gm, '$1? '), 'latin1');

test.each(REQUESTS)(
  "The adapter's own routing does not change the answer: %s",
  async (_, _status, request) => {
    const bytes = Buffer.from(request as string);
    expect(await answerOf(native, withQuery(bytes))).toBe(await answerOf(native, bytes));
  },
);

test('The adapter, unlike a plain server, makes objects with the prototypes that Express would set', async () => {
  const { request, response } = service.app.getHttpAdapter().getInstance();
  const wanted = new Map<Server, boolean>();
  for (const server of [native, stock]) {
    server.prependOnceListener('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      wanted.set(
        server,
        Object.getPrototypeOf(incoming) === request && Object.getPrototypeOf(outgoing) === response,
      );
    });
    await answerOf(server, Buffer.from(get('/health/live')));
  }
  expect([wanted.get(native), wanted.get(stock)]).toEqual([true, false]);
});
