import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, programPath } from './machine.js';
import { PATIENCE_MS } from './patience.js';

const POLL_MS = 25;

/** The gateways that `deploy/gateway/` has a configuration for. */
export const GATEWAYS = ['nginx', 'haproxy'] as const;
export type GatewayName = (typeof GATEWAYS)[number];

export interface Gateway {
  port: number;
  stop: () => Promise<void>;
}

const nginxArguments = (file: string, folder: string) => [
  ...['-p', folder, '-c', file],
  ...['-g', `daemon off; pid ${join(folder, 'nginx.pid')};`],
];
const haproxyArguments = (file: string) => ['-db', '-q', '-f', file];

/** Runs the gateway with its configuration from `deploy/gateway/`, in which only ports and folders are others. */
export async function startGateway(name: GatewayName, replicas: readonly [number, number]): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), `plant-store-${name}-`));
  // nginx's workers are another user.
  await chmod(folder, 0o755);
  const port = await freePort();
  const file = join(folder, name);
  await writeFile(file, await configuration(name, port, replicas, folder));

  const child = spawn(
    programPath(name) as string,
    name === 'nginx' ? nginxArguments(file, folder) : haproxyArguments(file),
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = once(child, 'close');
  let complaints = '';
  child.stderr.on('data', (data: Buffer) => (complaints += data.toString()));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  const begun = performance.now();
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() - begun > PATIENCE_MS) {
      await stop();
      throw new Error(`${name} did not start: ${complaints}`);
    }
    await delay(POLL_MS);
  }
  return { port, stop };
}

async function configuration(
  name: GatewayName,
  port: number,
  replicas: readonly [number, number],
  folder: string,
): Promise<string> {
  const text = await readFile(`deploy/gateway/${name === 'nginx' ? 'nginx.conf' : 'haproxy.cfg'}`, 'utf8');
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${join(folder, kind)};`,
  );
  const substitutions: [string, string][] = [
    ['8080', String(port)],
    ['3001', String(replicas[0])],
    ['3002', String(replicas[1])],
    ...(name === 'nginx' ? [['http {', `http { ${folders.join(' ')}`] as [string, string]] : []),
  ];
  return substitutions.reduce((changed, [from, to]) => {
    if (changed.split(from).length !== 2) throw new Error(`${name}: "${from}" is not there once`);
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
