// `node scripts/compiled.js FILE [ARGUMENT…]`: runs a file of `dist`. Builds changes first if the development packages
// are installed.
import { build, canBuild } from './build.js';

if (canBuild()) {
  await build().catch(({ message }) => {
    console.error(message);
    process.exit(1);
  });
}
const [file] = process.argv.splice(2, 1);
await import(new URL(`../dist/${file}`, import.meta.url).href);
