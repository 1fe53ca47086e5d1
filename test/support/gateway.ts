import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, programPath } from './machine.js';
import { untilAnswers } from './patience.js';

/** The programs of the gateways that `deploy/gateway/` has a configuration for. */
export const GATEWAYS = ['nginx', 'haproxy', 'apache2', 'caddy'] as const;
type GatewayName = (typeof GATEWAYS)[number];

export interface Gateway {
  port: number;
  stop: () => Promise<void>;
}

interface Example {
  file: string;
  /** @param file the configuration with this test's ports and folders. */
  arguments: (file: string, folder: string) => string[];
  /** Other texts to replace in the configuration. */
  substitutions?: (folder: string) => [from: string, to: string][];
}

const EXAMPLES: Record<GatewayName, Example> = {
  nginx: {
    file: 'nginx.conf',
    arguments: (file, folder) => [
      ...['-p', folder, '-c', file],
      ...['-g', `daemon off; pid ${join(folder, 'nginx.pid')};`],
    ],
    substitutions: (folder) => {
      const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
      const paths = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`);
      return [['http {', `http { ${paths.join(' ')}`]];
    },
  },
  haproxy: { file: 'haproxy.cfg', arguments: (file) => ['-db', '-q', '-f', file] },
  apache2: {
    file: 'apache.conf',
    arguments: (file, folder) => [
      ...['-D', 'FOREGROUND', '-f', file],
      ...['-c', `PidFile ${join(folder, 'apache.pid')}`, '-c', `DefaultRuntimeDir ${folder}`],
    ],
    substitutions: (folder) => [
      ['/etc/apache2/plant-store', join(folder, 'apache-errors')],
      ['/var/log/apache2', folder],
    ],
  },
  caddy: { file: 'Caddyfile', arguments: (file) => ['run', '--adapter', 'caddyfile', '--config', file] },
};

/** Runs a gateway with its configuration from `deploy/gateway/`; only ports and folders are replaced in it. */
export async function startGateway(name: GatewayName, replicas: readonly [number, number]): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), `plant-store-${name}-`));
  // The workers of nginx and Apache run as another user.
  await chmod(folder, 0o755);
  await cp('deploy/gateway', folder, { recursive: true });
  const port = await freePort();
  const file = join(folder, name);
  await writeFile(file, await configuration(name, port, replicas, folder));

  const child = spawn(programPath(name) as string, EXAMPLES[name].arguments(file, folder), {
    // Caddy keeps files in the home folder.
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close');
  let complaints = '';
  child.stderr.on('data', (data: Buffer) => (complaints += data.toString()));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  await untilAnswers(name, child, () => accepts(port), { output: () => complaints, stop });
  return { port, stop };
}

async function configuration(
  name: GatewayName,
  port: number,
  replicas: readonly [number, number],
  folder: string,
): Promise<string> {
  const { file, substitutions: others } = EXAMPLES[name];
  const text = await readFile(join('deploy/gateway', file), 'utf8');
  const substitutions: [string, string][] = [
    ['8080', String(port)],
    [':3001', `:${replicas[0]}`],
    [':3002', `:${replicas[1]}`],
    ...(others?.(folder) ?? []),
  ];
  return substitutions.reduce((changed, [from, to]) => {
    if (changed.split(from).length !== 2) throw new Error(`${name}: "${from}" must occur once`);
    return changed.replace(from, to);
  }, text);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
