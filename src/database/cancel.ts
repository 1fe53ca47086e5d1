import { connect, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { PoolClient } from 'pg';

/** What `pg` knows of a session and does not declare. */
interface Session {
  host: string;
  port: number;
  processID: number | null;
  secretKey: number | null;
  connection: { stream: Duplex };
}

const CANCEL_REQUEST_CODE = 80_877_102;
/** How long the server gets to take the request before the statement's connection is cut all the same. */
const CANCEL_MS = 1_000;
/** How long the request itself stays. PgBouncer 1.18 crashes where its connection is closed before it has passed it on. */
const CANCEL_STAYS_MS = 60_000;

/**
 * Gives a statement up: the server is asked by a CancelRequest (PostgreSQL's protocol, section 55.2.8) to stop it, and
 * then its connection is cut. Cutting alone would leave the server working, or waiting for a lock, for as long as the
 * statement takes; and so would cutting first where a pooler stands between, which forgets a client that is gone.
 *
 * @returns when the connection is closed.
 */
export async function abandonStatement(client: PoolClient): Promise<void> {
  const { stream } = (client as unknown as Session).connection;
  // The embedded database has no server to ask.
  if (stream instanceof Socket) await requestCancel(client as unknown as Session);
  if (stream.closed) return;
  await new Promise((closed) => {
    stream.once('close', closed).destroy(new Error('the statement outlived its time limit'));
  });
}

/** @returns when the server has passed the request on, or does not within the time limit. */
function requestCancel({ host, port, processID, secretKey }: Session): Promise<void> {
  if (processID === null || secretKey === null) return Promise.resolve();
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(CANCEL_REQUEST_CODE, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  return new Promise((done) => {
    const timer = setTimeout(done, CANCEL_MS);
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    // The answer is the end of the connection, and nothing else.
    socket
      .unref()
      .setTimeout(CANCEL_STAYS_MS, () => socket.destroy())
      .on('error', () => socket.destroy())
      .on('close', () => {
        clearTimeout(timer);
        done();
      })
      .resume()
      .write(request);
  });
}
