import { Socket } from 'node:net';
import pg from 'pg';

/** What `pg` knows of a session, and of a connection, and does not declare. */
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

/** How long the server gets to take the request before the statement's connection is cut all the same. */
const CANCEL_MS = 1_000;
/** How long the request itself stays. PgBouncer 1.18 crashes if its connection is closed before it has passed it on. */
const CANCEL_STAYS_MS = 60_000;

/**
 * Gives a statement up: a CancelRequest (PostgreSQL's protocol, section 55.2.8) asks the server to stop it, and then its
 * connection is cut. Cutting alone would leave the server working, or waiting for a lock, for as long as the statement
 * takes; and so would cutting first if a pooler stands between, which forgets a client that is gone.
 *
 * @returns when the connection is closed.
 */
export async function abandonStatement(client: pg.Client): Promise<void> {
  const { stream } = client.connection;
  // The embedded database has no server to ask.
  if (stream instanceof Socket) await requestCancel(client).catch(() => undefined);
  if (stream.closed) return;
  await new Promise((closed) => {
    stream.once('close', closed).destroy(new Error('the statement outlived its time limit'));
  });
}

/**
 * Asks the way the session was made: through TLS if the session was, since the key of the request lets anybody cancel.
 *
 * @returns when the server has passed the request on, or does not within the time limit.
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
      // The answer is the end of the connection, and nothing else.
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
