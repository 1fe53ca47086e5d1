import { readdirSync, readFileSync } from 'node:fs';
import { load, loadAll } from 'js-yaml';
import { loadConfig, VARIABLES } from '../src/config/config.js';

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
  [probe: `${string}Probe`]: { httpGet: { path: string } };
}

interface Workload {
  spec: { template: { spec: { containers: [Container]; terminationGracePeriodSeconds: number } } };
}

const manifests = readdirSync(KUBERNETES).flatMap((file) =>
  (loadAll(read(`${KUBERNETES}/${file}`)) as Manifest[]).map((manifest) => ({ file, ...manifest })),
);
const find = (kind: string) => manifests.find((manifest) => manifest.kind === kind) as unknown;
const podOf = (kind: string) => (find(kind) as Workload).spec.template.spec;

describe('the Kubernetes manifests', () => {
  test('the pods keep to the restricted security standard, and their file systems are read-only', () => {
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

  test('the probes ask live of what restarts, and ready of what sends requests', () => {
    const [container] = podOf('Deployment').containers;
    expect(container.startupProbe?.httpGet.path).toBe('/health/live');
    expect(container.livenessProbe?.httpGet.path).toBe('/health/live');
    expect(container.readinessProbe?.httpGet.path).toBe('/health/ready');
  });

  test('the environment is one that the service takes, and the stop fits into the grace period', () => {
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

  test('the example of a secret is refused as it stands', () => {
    const { stringData } = find('Secret') as { stringData: Record<string, string> };
    expect(() => loadConfig({ ...stringData, NODE_ENV: 'production' })).toThrow(/ACCESS_TOKENS/);
  });

  test('the migration runs the image of the replicas', () => {
    expect(podOf('Job').containers[0].image).toBe(podOf('Deployment').containers[0].image);
  });
});

describe('the Compose file', () => {
  const compose = load(read('docker-compose.yml')) as {
    services: Record<
      'plant-store' | 'postgres',
      { environment: Record<string, string>; healthcheck: object; depends_on: object }
    >;
  };

  test('gives the service only variables that it has, with values that it takes without anything set', () => {
    const { environment } = compose.services['plant-store'];
    expect(Object.keys(VARIABLES)).toEqual(expect.arrayContaining(Object.keys(environment)));
    const unset = Object.entries(environment).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-(.*?)\}/g, '$1'),
    ]);
    const config = loadConfig(Object.fromEntries(unset) as Record<string, string>);
    expect(config.production).toBe(false);
    expect(config.database.url).toBe('postgres://plant:plant@postgres/plant');
  });

  test('starts the service when the database is healthy', () => {
    expect(compose.services['plant-store'].depends_on).toEqual({
      postgres: { condition: 'service_healthy' },
    });
    expect(compose.services.postgres.healthcheck).toHaveProperty('test');
  });
});
