import { customCleanEnv } from 'envalid';
import { readEnvFile } from './env-file.js';
import {
  baseUrl,
  databaseUrl,
  host,
  integer,
  isInsecure,
  jwksUrl,
  oneOf,
  origins,
  scope,
  size,
  text,
  tokenDigests,
  trustProxy,
} from './values.js';

/** The whole configuration, read from the environment and checked once at the start. */
export type Config = ReturnType<typeof loadConfig>;

/** The environment has faults. Each of `faults` starts with the variable's name. */
export class ConfigError extends Error {
  override name = 'ConfigError' as const;

  constructor(readonly faults: string[]) {
    super(
      `The environment has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n  ${faults.join('\n  ')}`,
    );
  }
}

/** The variables by name. A test checks that `.env.example` lists the same. */
export const VARIABLES = {
  NODE_ENV: oneOf('production', 'development', 'test')({ default: 'development' }),
  HOST: host({ default: '127.0.0.1' }),
  PORT: integer(0, 65_535)({ default: 3000 }),
  BASE_URL: baseUrl({ default: undefined }),
  BODY_LIMIT: size('64mb')({ default: 1024 * 1024 }),
  BODY_BUDGET: size('4gb')({ default: 64 * 1024 * 1024 }),
  MAX_CONNECTIONS: integer(1, 1_000_000)({ default: 4_096 }),
  TRUST_PROXY: trustProxy({ default: false }),
  CORS_ORIGINS: origins({ default: [] }),
  KEEP_ALIVE_TIMEOUT_MS: integer(1_000, 3_600_000)({ default: 75_000 }),
  DOCS: oneOf('on', 'off')({ default: 'on' }),
  DATABASE_URL: databaseUrl({ default: undefined }),
  DATA_DIR: text({ default: undefined }),
  MIGRATIONS: oneOf('auto', 'off')({ default: 'auto' }),
  DATABASE_POOL_SIZE: integer(2, 1_000)({ default: 4 }),
  DATABASE_TIMEOUT_MS: integer(100, 600_000)({ default: 4_000 }),
  ACCESS_TOKENS: tokenDigests({ default: [] }),
  JWT_JWKS_URL: jwksUrl({ default: undefined }),
  JWT_ISSUER: text({ default: undefined }),
  JWT_AUDIENCE: text({ default: undefined }),
  JWT_SCOPE: scope({ default: [] }),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')({ default: 'info' }),
  METRICS: oneOf('on', 'off')({ default: 'off' }),
  METRICS_PORT: integer(0, 65_535)({ default: undefined }),
  SHUTDOWN_DELAY_MS: integer(0, 600_000)({ default: 0 }),
  SHUTDOWN_TIMEOUT_MS: integer(0, 600_000)({ default: 10_000 }),
};

const JWT_VARIABLES = ['JWT_JWKS_URL', 'JWT_ISSUER', 'JWT_AUDIENCE'] as const;

/**
 * Reads the environment of this process and, for variables that it does not set, the file `.env`.
 *
 * @throws {ConfigError} with all faults of both.
 */
export function loadConfigOfProcess(): Config {
  const { variables, faults } = readEnvFile('.env');
  for (const [name, value] of variables) process.env[name] ??= value;
  return loadConfig(process.env, faults);
}

/**
 * @param environment the variables by name. White space around a value is dropped, since a secret in a file often ends
 *   in a line end. An empty value counts as unset: this is how Docker Compose passes unset variables.
 * @param faults that are already known.
 * @throws {ConfigError} with all faults.
 */
export function loadConfig(environment: NodeJS.ProcessEnv, faults: string[] = []) {
  const given = Object.fromEntries(
    Object.keys(VARIABLES)
      .map((name) => [name, environment[name]?.trim() ?? ''] as const)
      .filter(([, value]) => value !== ''),
  );
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
      faults.push(`${name} is missing: JWT checking needs all of ${JWT_VARIABLES.join(', ')}`);
  } else if (isGiven('JWT_SCOPE')) {
    faults.push(`JWT_SCOPE has no effect without ${JWT_VARIABLES.join(', ')}`);
  }
  if (production && env.JWT_JWKS_URL !== undefined && isInsecure(env.JWT_JWKS_URL)) {
    faults.push(
      'JWT_JWKS_URL must start with https:// in production, unless it leads to this machine: whoever can change the keys in transit can forge tokens',
    );
  }
  if (env.METRICS_PORT !== undefined && env.METRICS_PORT !== 0 && env.METRICS_PORT === env.PORT) {
    faults.push('METRICS_PORT must differ from PORT');
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
  if (env.BODY_BUDGET < env.BODY_LIMIT) faults.push('BODY_BUDGET must not be smaller than BODY_LIMIT');
  if (faults.length > 0) throw new ConfigError(faults);

  return {
    production,
    http: {
      host: env.HOST,
      port: env.PORT,
      /** Public base URL for the document's `{base_url}`, without a trailing slash. */
      baseUrl: env.BASE_URL,
      /** Largest request body in bytes, as sent and after decoding. */
      bodyLimit: env.BODY_LIMIT,
      /** Most memory for the bodies of all requests while they arrive, in bytes. */
      bodyBudget: env.BODY_BUDGET,
      /** Most open connections. Further ones are closed on arrival. */
      maxConnections: env.MAX_CONNECTIONS,
      /** The addresses and subnets whose X-Forwarded-For is trusted (Express's 'trust proxy'). */
      trustProxy: env.TRUST_PROXY,
      corsOrigins: env.CORS_ORIGINS,
      keepAliveTimeoutMs: env.KEEP_ALIVE_TIMEOUT_MS,
      /** Whether the document and Swagger UI are served. */
      docs: env.DOCS === 'on',
    },
    database: {
      /** `undefined`: the embedded PostgreSQL in `dataDir`. */
      url: env.DATABASE_URL,
      dataDir: env.DATA_DIR ?? './data',
      migrations: env.MIGRATIONS,
      poolSize: env.DATABASE_POOL_SIZE,
      /** How long a create may take in the store, waiting included. */
      timeoutMs: env.DATABASE_TIMEOUT_MS,
    },
    auth: {
      /** SHA-256 digests of the accepted opaque tokens, 32 bytes each. */
      tokenDigests: env.ACCESS_TOKENS,
      jwt: hasNoJwt
        ? undefined
        : {
            jwksUrl: env.JWT_JWKS_URL as string,
            issuer: env.JWT_ISSUER as string,
            audience: env.JWT_AUDIENCE as string,
            scope: env.JWT_SCOPE,
          },
    },
    operations: {
      logLevel: env.LOG_LEVEL,
      metrics: env.METRICS === 'on',
      /** A separate port for metrics and probes. `undefined`: they share the operation's port. */
      metricsPort: env.METRICS_PORT,
      shutdownDelayMs: env.SHUTDOWN_DELAY_MS,
      shutdownTimeoutMs: env.SHUTDOWN_TIMEOUT_MS,
    },
  };
}
