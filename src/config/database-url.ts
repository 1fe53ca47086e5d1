import pg from 'pg';

/** A PostgreSQL server as `DATABASE_URL` names it: one or more hosts, of which one takes writes. */
export interface DatabaseServer {
  /** For `pg`, with the first of the hosts. */
  connectionString: string;
  hosts: { host: string; port: number }[];
  /** Whether a host that takes no writes is passed over. */
  needsWritable: boolean;
}

/** The values of libpq's target_session_attrs that a service which writes can use. */
const SESSION_ATTRIBUTES = new Map([
  ['any', false],
  ['read-write', true],
  ['primary', true],
]);

/**
 * Reads what `pg` reads, and besides, as libpq does, several hosts: `h1:5432,h2:5432` or `?host=h1,h2&port=5432,5433`.
 * With several, a host must take writes unless `target_session_attrs=any` says otherwise; with one, only if asked.
 *
 * @throws {Error} if `pg` cannot use it. The message completes a sentence and repeats nothing of the address.
 */
export function parseDatabaseUrl(url: string): DatabaseServer {
  const [connectionString, ...others] = urlsOfHosts(url);
  const hosts = [connectionString, ...others].map((each) => {
    const { host, port } = clientFor(each);
    if (!(port >= 1 && port <= 65_535)) throw new Error('must have ports from 1 to 65535');
    return { host, port };
  });
  const attributes = queryOf(url).get('target_session_attrs') ?? (hosts.length > 1 ? 'read-write' : 'any');
  const needsWritable = SESSION_ATTRIBUTES.get(attributes);
  if (needsWritable === undefined) {
    throw new Error(`must have target_session_attrs ${[...SESSION_ATTRIBUTES.keys()].join(', ')}, or none`);
  }
  return { connectionString, hosts, needsWritable };
}

function clientFor(connectionString: string): pg.Client {
  try {
    return new pg.Client({ connectionString });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      code === 'ENOENT' || code === 'EACCES' || code === 'EISDIR'
        ? `names a file in sslrootcert, sslcert or sslkey that cannot be read (${code})`
        : 'must be a well-formed URL of a PostgreSQL server',
      { cause: error },
    );
  }
}

/** @returns the address once for each of its hosts. */
function urlsOfHosts(url: string): [string, ...string[]] {
  const query = queryOf(url);
  const [base = ''] = url.split('?', 1);
  const named = query.get('host')?.split(',') ?? [];
  if (named.length > 1) {
    const ports = query.get('port')?.split(',') ?? [];
    return named.map((host, index) => {
      query.set('host', host);
      const port = ports.length > 1 ? ports[index] : ports[0];
      if (port !== undefined) query.set('port', port);
      return `${base}?${query.toString()}`;
    }) as [string, ...string[]];
  }
  const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts.includes(',')
    ? (hosts.split(',').map((host) => before + host + after) as [string, ...string[]])
    : [url];
}

function queryOf(url: string): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start === -1 ? '' : url.slice(start));
}
