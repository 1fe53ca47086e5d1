import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { load, loadAll } from 'js-yaml';
import { loadConfig, VARIABLES } from '../src/config/config.js';
import { welcome } from '../src/welcome.js';
import { programPath } from './support/machine.js';
import { needs } from './support/requirements.js';

const KUBERNETES = 'deploy/kubernetes';
const read = (path: string) => readFileSync(path, 'utf8');

interface Manifest {
  apiVersion: string;
  kind: string;
}

interface Container {
  image: string;
  env?: { name: string; value: string }[];
  securityContext: object;
  resources: object;
  ports: { name: string; containerPort: number }[];
  [probe: `${string}Probe`]: { httpGet: { path: string; port: string } };
}

interface Workload {
  spec: {
    template: {
      metadata: { annotations: Record<string, string>; labels: Record<string, string> };
      spec: { containers: [Container]; terminationGracePeriodSeconds: number };
    };
  };
}

interface NetworkPolicy {
  spec: {
    podSelector: { matchLabels: Record<string, string> };
    policyTypes: string[];
    ingress?: { ports: { port: string | number }[] }[];
    egress: { ports: { port: string | number }[] }[];
  };
}

const manifests = readdirSync(KUBERNETES).flatMap((file) =>
  (loadAll(read(`${KUBERNETES}/${file}`)) as Manifest[]).map((manifest) => ({ file, ...manifest })),
);
const find = (kind: string) => manifests.find((manifest) => manifest.kind === kind) as unknown;
const podOf = (kind: string) => (find(kind) as Workload).spec.template.spec;
/** An image with its version, for the reader, and its digest, which decides. */
const PINNED = /^[a-z]+:\d[\w.-]*@sha256:[0-9a-f]{64}$/;

describe('The Kubernetes manifests', () => {
  test('run pods under the restricted security standard with read-only file systems', () => {
    for (const kind of ['Deployment', 'Job']) {
      const pod = podOf(kind);
      expect(pod).toMatchObject({
        securityContext: {
          runAsNonRoot: true,
          runAsUser: expect.any(Number) as number,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        automountServiceAccountToken: false,
      });
      expect(pod.containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(pod.containers[0].resources).toMatchObject({ requests: {}, limits: {} });
    }
  });

  test('use /health/live to start and restart pods, and /health/ready to route requests', () => {
    const [container] = podOf('Deployment').containers;
    expect(container.startupProbe?.httpGet.path).toBe('/health/live');
    expect(container.livenessProbe?.httpGet.path).toBe('/health/live');
    expect(container.readinessProbe?.httpGet.path).toBe('/health/ready');
  });

  test('give metrics and probes their own port, which Prometheus knows and the Service does not expose', () => {
    const [{ ports, env, ...probes }] = podOf('Deployment').containers;
    const operations = ports.find(({ name }) => name === 'operations')?.containerPort;
    expect(env).toContainEqual({ name: 'METRICS_PORT', value: String(operations) });
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const)
      expect(probes[probe]?.httpGet.port).toBe('operations');
    const { annotations } = (find('Deployment') as Workload).spec.template.metadata;
    expect(annotations).toEqual({ 'prometheus.io/scrape': 'true', 'prometheus.io/port': String(operations) });
    const service = find('Service') as { spec: { ports: { targetPort: string }[] } };
    expect(service.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
  });

  test('give every pod a network policy that opens exactly its ports', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy') as unknown as NetworkPolicy[];
    for (const kind of ['Deployment', 'Job']) {
      const { metadata, spec } = (find(kind) as Workload).spec.template;
      const policy = policies.find(
        (candidate) =>
          JSON.stringify(candidate.spec.podSelector.matchLabels) === JSON.stringify(metadata.labels),
      );
      expect(policy?.spec.policyTypes).toEqual(['Ingress', 'Egress']);
      const open = (policy?.spec.ingress ?? []).flatMap(({ ports }) => ports.map(({ port }) => port));
      const own = (spec.containers[0] as Partial<Container>).ports ?? [];
      expect(open).toEqual(own.map(({ name }) => name));
    }
  });

  test('set an environment that the service accepts, and a grace period longer than its stop', () => {
    const { containers, terminationGracePeriodSeconds } = podOf('Deployment');
    const env = Object.fromEntries((containers[0].env ?? []).map(({ name, value }) => [name, value]));
    const config = loadConfig({
      ...env,
      NODE_ENV: 'production',
      DATABASE_URL: 'postgres://a/b',
      ACCESS_TOKENS: 'a',
    });
    expect(config.database.migrations).toBe('off');
    const { shutdownDelayMs, shutdownTimeoutMs } = config.operations;
    expect(shutdownDelayMs + shutdownTimeoutMs).toBeLessThan((terminationGracePeriodSeconds - 5) * 1_000);
  });

  test('have an example of a secret that the service refuses until it is edited', () => {
    const { stringData } = find('Secret') as { stringData: Record<string, string> };
    expect(() => loadConfig({ ...stringData, NODE_ENV: 'production' })).toThrow(/ACCESS_TOKENS/);
  });

  test('migrate with the image of the replicas', () => {
    expect(podOf('Job').containers[0].image).toBe(podOf('Deployment').containers[0].image);
  });
});

describe('The Compose file', () => {
  const compose = load(read('docker-compose.yml')) as {
    services: Record<
      'plant-store' | 'postgres',
      {
        image: string;
        environment: Record<string, string>;
        healthcheck: object;
        depends_on: object;
        ports?: string[];
        mem_limit: string;
      }
    >;
  };
  /** Replaces `${NAME:-default}` as Compose does, the innermost first. */
  const interpolate = (text: string, variables: Record<string, string> = {}): string => {
    const next = text.replace(
      /\$\{(\w+):-([^${}]*)\}/g,
      (_, name: string, otherwise: string) => variables[name] || otherwise,
    );
    return next === text ? text : interpolate(next, variables);
  };

  test('passes on every variable of .env.example, and an unset one as unset', () => {
    const { environment } = compose.services['plant-store'];
    const own = ['HOST', 'DATA_DIR'];
    const documented = Array.from(
      read('.env.example').matchAll(/^(?:# )?([A-Z_]+)=/gm),
      ([, name = '']) => name,
    );
    expect(Object.keys(environment).sort()).toEqual(documented.filter((name) => !own.includes(name)).sort());
    expect(Object.keys(VARIABLES)).toEqual(expect.arrayContaining(Object.keys(environment)));
    for (const [name, value] of Object.entries(environment))
      expect(interpolate(value, { [name]: 'a value' })).toBe('a value');

    const unset = Object.entries(environment).map(([name, value]) => [name, interpolate(value)]);
    const config = loadConfig(Object.fromEntries(unset) as Record<string, string>);
    const defaults = loadConfig({ DATABASE_URL: 'postgres://plant:plant@postgres/plant' });
    expect(config).toEqual(defaults);
  });

  test.each([
    [{}, '127.0.0.1:3000:3000', 'http://localhost:3000/docs'],
    [{ PORT: '8080', HOST: '0.0.0.0' }, '0.0.0.0:8080:8080', 'http://localhost:8080/docs'],
  ])(
    'publishes the port that the greeting names, on loopback unless HOST is set: %j',
    (variables, ports, address) => {
      const { environment, ports: published = [] } = compose.services['plant-store'];
      expect(published.map((port) => interpolate(port, variables))).toEqual([ports]);
      const port = Number(interpolate(environment.PORT as string, variables));
      // The image sets HOST.
      expect(welcome(loadConfig({ HOST: '0.0.0.0' }).http, port)).toContain(address);
    },
  );

  test('limits the memory of each service', () => {
    expect(Object.values(compose.services).map(({ mem_limit }) => mem_limit)).toEqual(['512m', '1g']);
  });

  test('starts the service when the database is healthy', () => {
    expect(compose.services['plant-store'].depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
    });
    expect(compose.services.postgres.healthcheck).toHaveProperty('test');
  });
});

test('Base images are pinned to a version and its digest', () => {
  const bases = Array.from(read('Dockerfile').matchAll(/^FROM (\S+)/gm), ([, image = '']) => image);
  expect(new Set(bases).size).toBe(1);
  const compose = load(read('docker-compose.yml')) as { services: { postgres: { image: string } } };
  for (const image of [...bases, compose.services.postgres.image]) expect(image).toMatch(PINNED);
});

describe('The systemd unit', () => {
  const UNIT = 'deploy/systemd/plant-store.service';
  const settings = Array.from(
    read(UNIT).matchAll(/^(\w+)=(.*)$/gm),
    ([, name = '', value = '']) => [name, value] as const,
  );
  const all = (name: string) =>
    settings.filter(([candidate]) => candidate === name).map(([, value]) => value);

  test('sets an environment that the service accepts, and a folder for its data', () => {
    const env = Object.fromEntries(all('Environment').map((entry) => entry.split('=') as [string, string]));
    const config = loadConfig({ ...env, ACCESS_TOKENS: 'a' });
    expect(config.production).toBe(true);
    expect(config.database.dataDir).toBe(`/var/lib/${all('StateDirectory')[0] ?? ''}`);
    const { shutdownDelayMs, shutdownTimeoutMs } = config.operations;
    expect(shutdownDelayMs + shutdownTimeoutMs).toBeLessThan((Number(all('TimeoutStopSec')[0]) - 5) * 1_000);
  });

  needs('systemd-analyze')('in the view of systemd-analyze', () => {
    const analyze = (...args: string[]) =>
      spawnSync(programPath('systemd-analyze') as string, [...args, resolve(UNIT)], { encoding: 'utf8' });

    test('is valid', () => {
      // The unit names Debian's path of Node.js. This machine may have it elsewhere.
      const { status, stderr } = analyze('verify');
      const complaints = stderr
        .split('\n')
        .filter((line) => line !== '' && !line.includes('/usr/bin/node is not executable'));
      expect(complaints).toEqual([]);
      if (existsSync('/usr/bin/node')) expect(status).toBe(0);
    });

    test('has an exposure level of at most 1.5 of 10', () => {
      const { status, stdout } = analyze('security', '--offline=true', '--no-pager', '--threshold=15');
      expect(stdout).toContain('Overall exposure level');
      expect(status).toBe(0);
    });
  });
});
