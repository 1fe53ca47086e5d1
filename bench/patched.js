// `node --import bench/patched.js main.js` runs a program with changed source. BENCH_PATCHES is a JSON list of changes:
// the end of a file's URL, the text to find in it and its replacement.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

// Node runs the hook below in a thread of its own, which imports this file again.
if (isMainThread) register(import.meta.url);

const patches = JSON.parse(process.env.BENCH_PATCHES);

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  const own = patches.filter(([file]) => url.endsWith(file));
  if (own.length === 0) return loaded;
  let source = loaded.source.toString();
  for (const [file, text, replacement] of own) {
    if (source.split(text).length !== 2) throw new Error(`${file} must have this text once: ${text}`);
    source = source.replace(text, () => replacement);
  }
  return { ...loaded, source };
}
