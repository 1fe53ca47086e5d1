import pg from 'pg';

/** The server in `DATABASE_URL`: one or more hosts, one of which takes writes. */
export interface DatabaseServer {
  /** For `pg`, with the first host. */
  connectionString: string;
  hosts: { host: string; port: number }[];
  /** Whether a host that takes no writes is skipped. */
  needsWritable: boolean;
}

/** The values of libpq's target_session_attrs with which a service can write. */
const SESSION_ATTRIBUTES = new Map([
  ['any', false],
  ['read-write', true],
  ['primary', true],
]);

/**
 * Reads a URL as `pg` does, but also several hosts as libpq does: `h1:5432,h2:5432` or `?host=h1,h2&port=5432,5433`. A
 * host must take writes if `target_session_attrs` says so or, without that, if there are several hosts.
 *
 * @throws {Error} if `pg` cannot use the URL. The message completes a sentence and repeats nothing of the URL.
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

/** @returns the URL once for each of its hosts. */
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
