import { connect } from 'node:net';
import type { PoolClient } from 'pg';

/** What `pg` knows of a session and does not declare. */
interface Session {
  host: string;
  port: number;
  processID: number | null;
  secretKey: number | null;
  connection: { stream: { destroy(error?: Error): void } };
}

const CANCEL_REQUEST_CODE = 80_877_102;
const CONNECT_MS = 1_000;

/**
 * Gives a statement up: its connection is cut, so that the caller is answered at once, and the server is asked by a
 * CancelRequest (PostgreSQL's protocol, section 55.2.8) to stop it. Cutting alone would leave the server working, or
 * waiting for a lock, for as long as the statement takes.
 */
export function abandonStatement(client: PoolClient): void {
  const { host, port, processID, secretKey, connection } = client as unknown as Session;
  connection.stream.destroy(new Error('the statement outlived its time limit'));
  if (processID === null || secretKey === null) return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(16, 0);
  request.writeInt32BE(CANCEL_REQUEST_CODE, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket
    .setTimeout(CONNECT_MS, () => socket.destroy())
    .on('error', () => socket.destroy())
    .end(request);
}
