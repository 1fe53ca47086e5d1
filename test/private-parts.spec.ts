import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { abandonStatement } from '../src/database/cancel.js';
import { poolOf } from '../src/database/data-source.js';
import { startService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

// The service uses some undocumented parts of its packages and of Node.js. If a new version changes one, these tests fail.
// src/http/literal-routes.spec.ts has the test for Express's router, embedded.spec.ts that for PGlite.

const undo = undoAfterEach();

async function listen(server: Server): Promise<number> {
  undo(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

describe('pg', () => {
  const KEY = { processID: 4_711, secretKey: -2_000_000_000 };
  /** Messages of PostgreSQL's protocol (section 55.7). */
  const CANCEL_REQUEST = [16, 80_877_102, KEY.processID, KEY.secretKey];
  const SSL_REQUEST = [8, 80_877_103];

  /** Starts a minimal PostgreSQL server, which opens a session on its first connection and answers no statement. */
  async function startSession(): Promise<{ client: pg.Client; next: Promise<[Socket]> }> {
    const server = createServer();
    const port = await listen(server);
    const first = once(server, 'connection') as Promise<[Socket]>;
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'plant', database: 'plants', ssl: false });
    client.on('error', () => undefined);
    const connected = client.connect();
    const [session] = await first;
    await once(session, 'data');
    const key = Buffer.alloc(13);
    key.write('K');
    key.writeInt32BE(12, 1);
    key.writeInt32BE(KEY.processID, 5);
    key.writeInt32BE(KEY.secretKey, 9);
    const authenticationOk = Buffer.from('520000000800000000', 'hex');
    const readyForQuery = Buffer.from('5a0000000549', 'hex');
    session.write(Buffer.concat([authenticationOk, key, readyForQuery]));
    await connected;
    return { client, next: once(server, 'connection') as Promise<[Socket]> };
  }

  const integers = (bytes: Buffer) =>
    Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readInt32BE(4 * index));

  test('has what abandonStatement() needs to cancel a statement and destroy its connection', async () => {
    const { client, next } = await startSession();
    const statement = client.query('SELECT 1');
    const lost = expect(statement).rejects.toThrow('the statement outlived its time limit');
    const abandoned = abandonStatement(client);
    const [cancelling] = await next;
    const [bytes] = (await once(cancelling, 'data')) as [Buffer];
    expect(integers(bytes)).toEqual(CANCEL_REQUEST);
    cancelling.end();
    await abandoned;
    expect(client.connection.stream.closed).toBe(true);
    await lost;
  });

  test('says whether the session uses TLS, so that the key is sent over TLS too', async () => {
    const { client, next } = await startSession();
    Object.assign(client, { ssl: true });
    const abandoned = abandonStatement(client);
    const [cancelling] = await next;
    const [bytes] = (await once(cancelling, 'data')) as [Buffer];
    expect(integers(bytes)).toEqual(SSL_REQUEST);
    cancelling.destroy();
    await abandoned;
  });
});

test('TypeORM keeps its pool where poolOf() looks', async () => {
  const service = await startService();
  undo(() => service.stop());
  expect(poolOf(service.app.get(DataSource))).toMatchObject({
    totalCount: expect.any(Number) as number,
    idleCount: expect.any(Number) as number,
    waitingCount: 0,
  });
});

test('Node.js reads each HTTP connection with one listener, and counts the bytes that are not sent yet', async () => {
  const server = createHttpServer();
  const port = await listen(server);
  const client = connect(port, '127.0.0.1');
  undo(() => client.destroy());
  const [socket] = (await once(server, 'connection')) as [Socket & { _handle: { writeQueueSize: unknown } }];
  undo(() => socket.destroy());
  expect(socket.listeners('data')).toEqual([expect.any(Function)]);
  // The first is the socket's own.
  expect(socket.listeners('end').map(({ name }) => name)).toEqual([
    'onReadableStreamEnd',
    'bound socketOnEnd',
  ]);
  expect(socket._handle.writeQueueSize).toBe(0);
  // Bytes that are given to the listener reach the parser.
  const [parse] = socket.listeners('data') as [(bytes: Buffer) => void];
  const parsed = once(server, 'request') as Promise<[{ url: string }]>;
  parse.call(socket, Buffer.from('GET /given HTTP/1.1\r\nHost: a\r\n\r\n'));
  expect((await parsed)[0].url).toBe('/given');
});
