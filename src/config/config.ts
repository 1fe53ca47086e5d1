import { existsSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import bytes from 'bytes';
import { customCleanEnv, EnvError, makeValidator } from 'envalid';
import proxyAddr from 'proxy-addr';

/** All that the environment decides, read and checked once at the start. */
export interface Config {
  production: boolean;
  http: {
    host: string;
    port: number;
    /** Public base address for the document's `{base_url}`, without a trailing slash. */
    baseUrl: string | undefined;
    /** Largest request body in bytes, after decoding. */
    bodyLimit: number;
    /** What Express takes as 'trust proxy': a number of hops, or a list of addresses and subnets. */
    trustProxy: false | number | string[];
    corsOrigins: string[];
    keepAliveTimeoutMs: number;
  };
  database: {
    /** `undefined`: the embedded PostgreSQL in `dataDir`. */
    url: string | undefined;
    dataDir: string;
    migrations: 'auto' | 'off';
    poolSize: number;
    /** Longest time that a create may take in the store, waiting included. */
    timeoutMs: number;
  };
  auth: {
    /** SHA-256 digests of the accepted opaque tokens, 32 bytes each. */
    tokenDigests: Buffer[];
    jwt: { jwksUrl: string; issuer: string; audience: string } | undefined;
  };
  operations: {
    logLevel: (typeof LOG_LEVELS)[number];
    metrics: boolean;
    shutdownDelayMs: number;
    shutdownTimeoutMs: number;
  };
}

/** The environment has faults; `faults` has one line for each, starting with the variable's name. */
export class ConfigError extends Error {
  override name = 'ConfigError' as const;

  constructor(readonly faults: string[]) {
    super(
      `The environment has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n  ${faults.join('\n  ')}`,
    );
  }
}

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** RFC 6750 section 2.1: the characters of a bearer token. */
const BEARER_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

// Every message below states the rule and never repeats the value, which may be a secret.

const text = makeValidator<string>((input) => input);

const oneOf = <T extends string>(...choices: T[]) =>
  makeValidator<T>((input) => {
    const choice = choices.find((candidate) => candidate === input);
    if (choice === undefined) throw new EnvError(`must be one of ${choices.join(', ')}`);
    return choice;
  });

const integer = (min: number, max: number) =>
  makeValidator<number>((input) => {
    const value = Number(input);
    if (!/^\d+$/.test(input) || value < min || value > max) {
      throw new EnvError(`must be a whole number from ${min} to ${max}`);
    }
    return value;
  });

const url = (...protocols: string[]) =>
  makeValidator<string>((input) => {
    if (!protocols.some((protocol) => input.startsWith(`${protocol}://`)) || !URL.canParse(input)) {
      throw new EnvError(`must be a URL that starts with ${protocols.map((p) => `${p}://`).join(' or ')}`);
    }
    return input;
  });

const size = makeValidator<number>((input) => {
  const value = /^\d+(\.\d+)?\s*(b|kb|mb)?$/i.test(input) ? bytes.parse(input) : null;
  if (value === null || value < 1024 || value > 64 * 1024 * 1024) {
    throw new EnvError('must be a size from 1kb to 64mb, such as 100kb or 1mb');
  }
  return value;
});

const list = (input: string) =>
  input
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

const tokenDigests = makeValidator<Buffer[]>((input) => {
  const entries = list(input);
  if (entries.length === 0) throw new EnvError('has no token in it');
  return entries.map((entry, index) => {
    const position = `entry ${index + 1}`;
    if (entry.startsWith('sha256:')) {
      if (!/^sha256:[0-9a-f]{64}$/i.test(entry))
        throw new EnvError(`${position}: sha256: takes 64 hexadecimal digits`);
      return Buffer.from(entry.slice('sha256:'.length), 'hex');
    }
    if (!BEARER_TOKEN.test(entry)) {
      throw new EnvError(
        `${position}: a bearer token has only the characters A-Z a-z 0-9 - . _ ~ + / and ends in any number of =`,
      );
    }
    return createHash('sha256').update(entry).digest();
  });
});

const origins = makeValidator<string[]>((input) =>
  list(input).map((entry, index) => {
    if (!URL.canParse(entry) || new URL(entry).origin !== entry) {
      throw new EnvError(
        `entry ${index + 1} must be an origin, such as https://app.example.com, without a path`,
      );
    }
    return entry;
  }),
);

const trustProxy = makeValidator<false | number | string[]>((input) => {
  if (input === 'off') return false;
  if (/^\d+$/.test(input) && Number(input) <= 16) return Number(input);
  const proxies = list(input);
  const named = ['loopback', 'linklocal', 'uniquelocal'];
  if (
    proxies.length === 0 ||
    !proxies.every((entry) => named.includes(entry) || isIP(entry.split('/')[0] ?? '') !== 0)
  ) {
    throw new EnvError(
      `must be off, a number of proxies up to 16, or a list of addresses, subnets and ${named.join(', ')}`,
    );
  }
  try {
    proxyAddr.compile(proxies);
  } catch {
    throw new EnvError('has a subnet that is none');
  }
  return proxies;
});

/** The variables by name. `.env.example` lists the same, which a test checks. */
export const VARIABLES = {
  NODE_ENV: text({ default: 'development' }),
  HOST: text({ default: '127.0.0.1' }),
  PORT: integer(0, 65_535)({ default: 3000 }),
  BASE_URL: url('http', 'https')({ default: undefined }),
  BODY_LIMIT: size({ default: 1024 * 1024 }),
  TRUST_PROXY: trustProxy({ default: false }),
  CORS_ORIGINS: origins({ default: [] }),
  KEEP_ALIVE_TIMEOUT_MS: integer(1_000, 3_600_000)({ default: 75_000 }),
  DATABASE_URL: url('postgres', 'postgresql')({ default: undefined }),
  DATA_DIR: text({ default: undefined }),
  MIGRATIONS: oneOf('auto', 'off')({ default: 'auto' }),
  DATABASE_POOL_SIZE: integer(2, 1_000)({ default: 4 }),
  DATABASE_TIMEOUT_MS: integer(100, 600_000)({ default: 4_000 }),
  ACCESS_TOKENS: tokenDigests({ default: [] }),
  JWT_JWKS_URL: url('http', 'https')({ default: undefined }),
  JWT_ISSUER: text({ default: undefined }),
  JWT_AUDIENCE: text({ default: undefined }),
  LOG_LEVEL: oneOf(...LOG_LEVELS)({ default: 'info' }),
  METRICS: oneOf('on', 'off')({ default: 'off' }),
  SHUTDOWN_DELAY_MS: integer(0, 600_000)({ default: 0 }),
  SHUTDOWN_TIMEOUT_MS: integer(0, 600_000)({ default: 10_000 }),
};

const JWT_VARIABLES = ['JWT_JWKS_URL', 'JWT_ISSUER', 'JWT_AUDIENCE'] as const;

/** Adds the variables of the file `.env`, where it exists, to those of the process, which go first. */
export function readEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile('.env');
}

/**
 * @param environment the variables by name; an empty value counts as unset, as Docker Compose passes it.
 * @throws {ConfigError} with every fault of the environment at once.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const faults: string[] = [];
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const report = ({ errors }: { errors: Partial<Record<string, Error>> }) => {
    for (const [name, error] of Object.entries(errors)) faults.push(`${name} ${error?.message ?? ''}`);
  };
  const env = customCleanEnv(given, VARIABLES, (values) => values, { reporter: report });

  const production = env.NODE_ENV === 'production';
  const isGiven = (name: string) => name in given;
  const jwtMissing = JWT_VARIABLES.filter((name) => !isGiven(name));
  const hasNoJwt = jwtMissing.length === JWT_VARIABLES.length;
  if (!hasNoJwt) {
    for (const name of jwtMissing)
      faults.push(`${name} is missing: JWT checking takes ${JWT_VARIABLES.join(', ')} together`);
  }
  if (production && hasNoJwt && !isGiven('ACCESS_TOKENS')) {
    faults.push(
      `ACCESS_TOKENS is missing: in production it, or ${JWT_VARIABLES.join(', ')}, must say who may call`,
    );
  }
  if (production && !isGiven('DATABASE_URL') && !isGiven('DATA_DIR')) {
    faults.push(
      'DATABASE_URL is missing: in production it must name a PostgreSQL server, or DATA_DIR a folder for the embedded one',
    );
  }
  if (faults.length > 0) throw new ConfigError(faults);

  return {
    production,
    http: {
      host: env.HOST,
      port: env.PORT,
      baseUrl: env.BASE_URL?.replace(/\/$/, ''),
      bodyLimit: env.BODY_LIMIT,
      trustProxy: env.TRUST_PROXY,
      corsOrigins: env.CORS_ORIGINS,
      keepAliveTimeoutMs: env.KEEP_ALIVE_TIMEOUT_MS,
    },
    database: {
      url: env.DATABASE_URL,
      dataDir: env.DATA_DIR ?? './data',
      migrations: env.MIGRATIONS,
      poolSize: env.DATABASE_POOL_SIZE,
      timeoutMs: env.DATABASE_TIMEOUT_MS,
    },
    auth: {
      tokenDigests: env.ACCESS_TOKENS,
      jwt: hasNoJwt
        ? undefined
        : {
            jwksUrl: env.JWT_JWKS_URL as string,
            issuer: env.JWT_ISSUER as string,
            audience: env.JWT_AUDIENCE as string,
          },
    },
    operations: {
      logLevel: env.LOG_LEVEL,
      metrics: env.METRICS === 'on',
      shutdownDelayMs: env.SHUTDOWN_DELAY_MS,
      shutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS,
    },
  };
}
