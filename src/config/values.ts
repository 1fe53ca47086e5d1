import { hash } from 'node:crypto';
import { isIP } from 'node:net';
import bytes from 'bytes';
import { EnvError, makeValidator } from 'envalid';
import proxyAddr from 'proxy-addr';
import { parseDatabaseUrl } from './database-url.js';

// The types of variables. Each message completes a sentence that starts with the variable's name. It states the rule
// and never repeats the value, which may be a secret.

/** RFC 6750 section 2.1: the characters of a bearer token. */
const BEARER_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
/** RFC 6749 section 3.3: scope tokens, separated by spaces. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: +[\x21\x23-\x5b\x5d-\x7e]+)*$/;
const HOST_NAME = /^[a-z\d](?:[a-z\d._-]*[a-z\d])?\.?$/i;
/** RFC 3986's characters for an authority and a path, without the single quote: the value is written into documents. */
const PLAIN_URL = /^https?:\/\/[\w\-.~:/[\]!$&()*+,;=%]+$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** One line of text. */
export const text = makeValidator<string>((input) => {
  // eslint-disable-next-line no-control-regex -- these are what is refused
  if (/[\0-\x1f\x7f]/.test(input)) throw new EnvError('must be one line without control characters');
  return input;
});

export const oneOf = <T extends string>(...choices: T[]) =>
  makeValidator<T>((input) => {
    const choice = choices.find((candidate) => candidate === input);
    if (choice === undefined) throw new EnvError(`must be one of ${choices.join(', ')}`);
    return choice;
  });

export const integer = (min: number, max: number) =>
  makeValidator<number>((input) => {
    const value = Number(input);
    if (!/^\d+$/.test(input) || value < min || value > max) {
      throw new EnvError(`must be a whole number from ${min} to ${max}`);
    }
    return value;
  });

/** @returns bytes. */
export const size = (max: string) =>
  makeValidator<number>((input) => {
    const value = /^\d+(\.\d+)?\s*(b|kb|mb|gb)?$/i.test(input) ? bytes.parse(input) : null;
    if (value === null || value < 1024 || value > (bytes.parse(max) as number)) {
      throw new EnvError(`must be a size from 1kb to ${max}, such as 100kb or 1mb`);
    }
    return value;
  });

/** An address or a host name to listen on. */
export const host = makeValidator<string>((input) => {
  if (input.includes('[')) throw new EnvError('must be an IPv6 address without brackets, such as ::1');
  if (isIP(input) === 0 && !HOST_NAME.test(input)) {
    throw new EnvError('must be an IP address or a host name, without a port');
  }
  return input;
});

/** @returns the base address without its trailing slash. */
export const baseUrl = makeValidator<string>((input) => {
  const url = parseUrl(input, 'http', 'https');
  if (!PLAIN_URL.test(input) || url.username !== '') {
    throw new EnvError(
      'must be an address with or without a path, such as https://plants.example.com: no user, query, quote or other character that a URL must escape',
    );
  }
  return input.replace(/\/$/, '');
});

/** A URL that {@link parseDatabaseUrl} can read. */
export const databaseUrl = makeValidator<string>((input) => {
  if (!/^(postgres(ql)?|socket):\//.test(input)) {
    throw new EnvError('must be a URL that starts with postgres:// or postgresql://');
  }
  try {
    decodeURIComponent(input);
  } catch {
    throw new EnvError(
      'has a percent sign that starts no escape sequence: write %25 for one in a user name or password',
    );
  }
  parseDatabaseUrl(input);
  return input;
});

/** The URL of a key set. It is not logged, so a query may contain a key. fetch() accepts no user and password. */
export const jwksUrl = makeValidator<string>((input) => {
  const url = parseUrl(input, 'https', 'http');
  if (url.username !== '' || url.password !== '') throw new EnvError('must not contain a user or a password');
  return input;
});

/** Whether a URL leads to another machine without TLS. */
export function isInsecure(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}

export const scope = makeValidator<string[]>((input) => {
  if (!SCOPE.test(input)) throw new EnvError('must be scopes separated by spaces, such as plants:create');
  return input.split(/ +/);
});

export const tokenDigests = makeValidator<Buffer[]>((input) => {
  const entries = list(input);
  if (entries.length === 0) throw new EnvError('contains no token');
  return entries.map((entry, index) => {
    const position = `entry ${index + 1}`;
    if (entry.startsWith('sha256:')) {
      if (!/^sha256:[0-9a-f]{64}$/i.test(entry))
        throw new EnvError(`${position}: sha256: must be followed by 64 hexadecimal digits`);
      return Buffer.from(entry.slice('sha256:'.length), 'hex');
    }
    if (!BEARER_TOKEN.test(entry)) {
      throw new EnvError(
        `${position}: a bearer token has only the characters A-Z a-z 0-9 - . _ ~ + / and may end in =`,
      );
    }
    return digestOfToken(entry);
  });
});

/** @returns the SHA-256 digest of a bearer token, 32 bytes: the only form in which the service keeps one. */
export function digestOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

export const origins = makeValidator<string[]>((input) =>
  list(input).map((entry, index) => {
    if (!URL.canParse(entry) || new URL(entry).origin !== entry) {
      throw new EnvError(
        `entry ${index + 1} must be an origin, such as https://app.example.com, without a path`,
      );
    }
    return entry;
  }),
);

const NAMED_SUBNETS = ['loopback', 'linklocal', 'uniquelocal'];

export const trustProxy = makeValidator<false | string[]>((input) => {
  if (input === 'off') return false;
  if (/^\d+$/.test(input)) {
    throw new EnvError(
      'must not be a number of proxies: a client that bypasses them could choose its address. Name their addresses or subnets',
    );
  }
  const proxies = list(input);
  if (
    proxies.length === 0 ||
    !proxies.every((entry) => NAMED_SUBNETS.includes(entry) || isIP(entry.split('/')[0] ?? '') !== 0)
  ) {
    throw new EnvError(`must be off, or a list of addresses, subnets and ${NAMED_SUBNETS.join(', ')}`);
  }
  try {
    proxyAddr.compile(proxies);
  } catch {
    throw new EnvError('contains an invalid subnet');
  }
  return proxies;
});

function parseUrl(input: string, ...protocols: string[]): URL {
  if (!protocols.some((protocol) => input.startsWith(`${protocol}://`))) {
    throw new EnvError(`must be a URL that starts with ${protocols.map((p) => `${p}://`).join(' or ')}`);
  }
  if (!URL.canParse(input)) throw new EnvError('must be a well-formed URL with one host');
  return new URL(input);
}

function list(input: string): string[] {
  return input
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
