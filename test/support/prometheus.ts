import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load, loadAll } from 'js-yaml';
import { freePort, programPath } from './machine.js';
import { untilAnswers } from './patience.js';

const FOLDER = 'deploy/prometheus';
/** The name of a label or an annotation as Kubernetes' service discovery writes it. */
const metaName = (name: string) => name.replaceAll(/[^a-zA-Z0-9_]/g, '_');

interface Pod {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
}
interface Configuration {
  global: object;
  scrape_configs: [{ kubernetes_sd_configs?: unknown }];
}

/** Each minute in the rules becomes this many seconds, or each test would wait for minutes. */
const SECONDS_IN_A_MINUTE = 3;
/** Longer than the service takes to answer while its database does not. */
const INTERVAL = '1500ms';

const shortened = (rules: string) =>
  rules.replaceAll(/\b(\d+)m\b/g, (_, minutes) => `${Number(minutes) * SECONDS_IN_A_MINUTE}s`);

/** The samples of one series: its labels, and a value for each step. */
interface Series {
  metric: Record<string, string>;
  values: number[];
}

/** A real Prometheus with the configuration and the alerts of `deploy/prometheus/`, twenty times as fast. */
export class Prometheus {
  readonly #began = Date.now() / 1000;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  /** @param target the port of the service, which poses as a pod with the annotations and labels of the manifest. */
  static async start(target: number): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-prometheus-'));
    const configuration = load(readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')) as Configuration;
    configuration.global = {
      scrape_interval: INTERVAL,
      scrape_timeout: INTERVAL,
      evaluation_interval: '500ms',
    };
    const [pods] = configuration.scrape_configs;
    delete pods.kubernetes_sd_configs;
    Object.assign(pods, { static_configs: [discoveredPod(target)] });
    writeFileSync(join(folder, 'prometheus.yml'), dump(configuration));
    writeFileSync(join(folder, 'alerts.yml'), shortened(readFileSync(join(FOLDER, 'alerts.yml'), 'utf8')));

    const port = await freePort();
    const child = spawn(
      programPath('prometheus') as string,
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        `--query.lookback-delta=${shortened('5m')}`,
        '--log.level=warn',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let complaints = '';
    child.stderr.on('data', (data: Buffer) => (complaints += data.toString()));
    const prometheus = new Prometheus(folder, port, child);
    await untilAnswers('Prometheus', child, () => prometheus.#isUp(), {
      output: () => complaints,
      stop: () => prometheus.stop(),
    });
    return prometheus;
  }

  /** The names of the alerts that fire now. */
  async firing(): Promise<string[]> {
    const { alerts } = await this.#ask<{ alerts: { state: string; labels: { alertname: string } }[] }>(
      'alerts',
    );
    const names = alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
    return [...new Set(names)].sort();
  }

  /** @returns the values of the expression from the start until now, one per second, as a Grafana panel queries them. */
  async range(expr: string): Promise<Series[]> {
    const times = { start: String(this.#began), end: String(Date.now() / 1000), step: '1' };
    const { result } = await this.#ask<{
      result: { metric: Record<string, string>; values: [number, string][] }[];
    }>(`query_range?${new URLSearchParams({ query: expr, ...times }).toString()}`);
    return result.map(({ metric, values }) => ({ metric, values: values.map(([, value]) => Number(value)) }));
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #isUp(): Promise<boolean> {
    try {
      return (await fetch(`http://127.0.0.1:${this.port}/-/ready`)).ok;
    } catch {
      return false;
    }
  }

  async #ask<Data>(path: string): Promise<Data> {
    const response = await fetch(`http://127.0.0.1:${this.port}/api/v1/${path}`);
    const answer = (await response.json()) as { status: string; data: Data; error?: string };
    if (answer.status !== 'success') throw new Error(answer.error);
    return answer.data;
  }
}

/** @returns the target that Kubernetes' service discovery would make from a pod of the manifest. */
function discoveredPod(port: number) {
  const manifests = loadAll(readFileSync('deploy/kubernetes/plant-store.yaml', 'utf8')) as { kind: string }[];
  const deployment = manifests.find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { template: Pod };
  };
  const { labels, annotations } = deployment.spec.template.metadata;
  const entries = [
    ...Object.entries(labels).map(([name, value]) => [`pod_label_${metaName(name)}`, value]),
    // In Kubernetes each pod has the port of the manifest; here the service has another one.
    ...Object.entries({ ...annotations, 'prometheus.io/port': String(port) }).map(([name, value]) => [
      `pod_annotation_${metaName(name)}`,
      value,
    ]),
    ['namespace', 'default'],
    ['pod_name', 'plant-store-0'],
  ];
  return {
    targets: ['127.0.0.1:9'],
    labels: Object.fromEntries(entries.map(([name, value]) => [`__meta_kubernetes_${name ?? ''}`, value])),
  };
}
