import { Socket } from 'node:net';
import pg from 'pg';

/** What `pg` keeps for a session and a connection. Its types do not declare it. */
interface SessionInternals {
  processID: number | null;
  secretKey: number | null;
  ssl: object | boolean;
  sslNegotiation?: string;
}
interface ConnectionInternals {
  connect: (port: number | string, host?: string) => void;
  requestSsl: () => void;
  cancel: (processID: number, secretKey: number) => void;
}

/** How long the server may take to accept the request before the statement's connection is closed anyway. */
const CANCEL_MS = 1_000;
/** How long the request's own connection stays open. PgBouncer 1.18 crashes if it closes before it is passed on. */
const CANCEL_STAYS_MS = 60_000;

/**
 * Abandons a statement: sends a CancelRequest (PostgreSQL's protocol, section 55.2.8), then closes the statement's
 * connection. If the connection just closed, the server would work on, or wait for a lock, until the statement ends.
 * The cancellation goes first because a pooler forgets a client that is gone.
 *
 * @returns when the connection is closed.
 */
export async function abandonStatement(client: pg.Client): Promise<void> {
  const { stream } = client.connection;
  // The embedded database has no server that could cancel.
  if (stream instanceof Socket) await requestCancel(client).catch(() => undefined);
  if (stream.closed) return;
  await new Promise((closed) => {
    stream.once('close', closed).destroy(new Error('the statement outlived its time limit'));
  });
}

/**
 * Uses TLS if the session does: anybody who reads the request's key can cancel.
 *
 * @returns when the server has accepted the request or the time limit ends.
 */
async function requestCancel(client: pg.Client): Promise<void> {
  const { processID, secretKey, ssl, sslNegotiation } = client as unknown as SessionInternals;
  if (processID === null || secretKey === null) return;
  const config = { ssl, sslNegotiation } as pg.ConnectionConfig;
  const connection = new pg.Connection(config) as pg.Connection & ConnectionInternals;
  const send = () => connection.cancel(processID, secretKey);
  await new Promise<void>((done) => {
    const timer = setTimeout(done, CANCEL_MS);
    connection
      .on('error', () => connection.stream.destroy())
      // The server's only answer is to close the connection.
      .once('end', () => {
        clearTimeout(timer);
        done();
      })
      .once('connect', () => {
        if (ssl === false) send();
        else if (sslNegotiation !== 'direct') connection.requestSsl();
      })
      .once('sslconnect', send);
    if (client.host.startsWith('/')) connection.connect(`${client.host}/.s.PGSQL.${client.port}`);
    else connection.connect(client.port, client.host);
    (connection.stream as Socket).unref().setTimeout(CANCEL_STAYS_MS, () => connection.stream.destroy());
  });
}
