import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';
import { abandonStatement } from './cancel.js';

const READY_FOR_QUERY = 'Z\0\0\0\x05I';
const AUTHENTICATION_OK = 'R\0\0\0\x08\0\0\0\0';
/** Process 0x01020304, key 0x85060708: one that is negative as an int32. */
const BACKEND_KEY_DATA = 'K\0\0\0\x0c\x01\x02\x03\x04\x85\x06\x07\x08';
/** PostgreSQL's protocol, section 55.7: length 16, code 80877102, then process and key. */
const CANCEL_REQUEST = '000000' + '10' + '04d2162e' + '01020304' + '85060708';

/** A server that takes every session, and answers no statement. */
async function startServer() {
  const sessions: Socket[] = [];
  const requests: Buffer[] = [];
  const server = createServer((socket) => {
    socket.once('data', (first: Buffer) => {
      requests.push(first);
      if (requests.length > 1) socket.end();
      else socket.write(Buffer.from(AUTHENTICATION_OK + BACKEND_KEY_DATA + READY_FOR_QUERY, 'latin1'));
    });
    sessions.push(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, sessions, requests, port: (server.address() as AddressInfo).port };
}

// It fails if `pg` no longer has, under their names, the private parts that the request is made of.
test('giving a statement up asks the server to cancel it, and then cuts its connection', async () => {
  const { server, sessions, requests, port } = await startServer();
  try {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'u', database: 'd' });
    client.on('error', () => undefined);
    await client.connect();
    const statement = client.query('SELECT 1');
    const outcome = expect(statement).rejects.toThrow('the statement outlived its time limit');
    const [session] = sessions as [Socket];
    const end = once(session, 'close');
    await abandonStatement(client);
    await outcome;
    await end;
    expect(requests[1]?.toString('hex')).toBe(CANCEL_REQUEST);
  } finally {
    for (const session of sessions) session.destroy();
    server.close();
  }
});
