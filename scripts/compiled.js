// `node scripts/compiled.js FILE [ARGUMENT…]`: runs a file of `dist`. Compiles changes first if the development
// packages are installed. A production installation has only what was built before.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

function find(path) {
  try {
    return require.resolve(path);
  } catch {
    return undefined;
  }
}

const compiler = find('typescript/bin/tsc');
if (compiler !== undefined && find('@types/pg/package.json') !== undefined) {
  const cwd = new URL('..', import.meta.url);
  execFileSync(process.execPath, [compiler, '--build', 'tsconfig.build.json'], { cwd, stdio: 'inherit' });
}
const [file] = process.argv.splice(2, 1);
await import(new URL(`../dist/${file}`, import.meta.url).href);
