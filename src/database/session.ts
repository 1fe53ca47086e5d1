import pg from 'pg';
import type { DatabaseServer } from '../config/database-url.js';
import { maySucceedLater } from './errors.js';

/** A session ends after at most this time, so that the pool follows a host name whose address changes. */
const MAX_AGE_MS = 5 * 60_000;

type Connected = (error: Error | null, client?: pg.Client) => void;

type SessionOptions = pg.ClientConfig & Partial<Pick<DatabaseServer, 'hosts' | 'needsWritable'>>;

/** One session of the pool, on a host that takes writes if `needsWritable`. */
export class Session extends pg.Client {
  readonly createdAt = performance.now();
  /** In milliseconds of performance.now(). Jittered, so that sessions do not end together. */
  readonly expiresAt = this.createdAt + MAX_AGE_MS * (0.8 + 0.2 * Math.random());
  /** Why the latest statement failed, although the server reported success. */
  fault: Error | undefined;

  constructor(private readonly options: SessionOptions) {
    super(options);
    // If the session is lost, the statement that uses it is rejected.
    this.on('error', () => undefined);
    // An administrator can cancel a commit's wait for a synchronous standby. The commit then succeeds with a warning.
    this.on('notice', ({ routine, message }) => {
      if (routine === 'SyncRepWaitForLSN') this.fault = new Error(message);
    });
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<pg.Client> | undefined {
    if (callback === undefined) {
      return new Promise((resolve, reject) => {
        this.connect((error) => (error === null ? resolve(this) : reject(error)));
      });
    }
    const { hosts = [], needsWritable = false } = this.options;
    if (hosts.length < 2 && !needsWritable) {
      super.connect(callback);
      return undefined;
    }
    findHost(hosts, this.options).then(({ host, port }) => {
      this.host = host;
      this.port = port;
      super.connect(callback);
    }, callback);
    return undefined;
  }
}

type Host = DatabaseServer['hosts'][number];

/** @returns the first host that answers that it can be used. All are asked at once, since some may not answer. */
async function findHost(hosts: Host[], options: SessionOptions): Promise<Host> {
  try {
    return await Promise.any(hosts.map((host) => ask(host, options)));
  } catch (error) {
    const { errors } = error as AggregateError;
    throw errors.find((each) => !maySucceedLater(each)) ?? errors[0];
  }
}

async function ask({ host, port }: Host, options: SessionOptions): Promise<Host> {
  const limit = (options.connectionTimeoutMillis ?? 0) / 2;
  const client = new pg.Client({ ...options, connectionTimeoutMillis: limit, query_timeout: limit });
  client.on('error', () => undefined);
  Object.assign(client, { host, port });
  try {
    await client.connect();
    if (options.needsWritable === true) {
      const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only');
      if (rows[0]?.transaction_read_only === 'on') {
        // read_only_sql_transaction, the SQLSTATE with which a write would fail there.
        throw Object.assign(new Error('The host takes no writes'), { code: '25006' });
      }
    }
    return { host, port };
  } finally {
    client.end().catch(() => undefined);
  }
}
