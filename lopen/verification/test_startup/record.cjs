'use strict';
/* Note which tests a runner in Node runs, beside what it prints, in lines that `lopen.verification.run_records` reads.

Every process of Node loads this file at its start in the clean room, under any version. In a process that is a test
runner it adds itself as a further reporter; any other one it leaves as it is. It never makes a run fail. */

const fs = require('fs');
const path = require('path');

const NOTES = path.join(path.dirname(__dirname), 'notes');
const OPTIONS = (() => {
  try {
    return fs.readFileSync(path.join(__dirname, 'options'), 'utf8').split('\n');
  } catch {
    return [];
  }
})(); // what lopen asks of this run: `stop` at the first failure, and with `only FILE::NAME` these files alone
const NAMED = [...new Set(OPTIONS.filter((line) => line.startsWith('only ')).map((line) => line.slice(5).split('::')[0]))];
const ASKED = NAMED.every((file) => fs.existsSync(file)) ? NAMED : [];
const MOST_NAMED = 400000; // characters of names of tests
const RUNNERS = new Set(['jest', 'vitest', 'mocha', '_mocha']);
const QUESTIONS = new Set(['--version', '-v', '-V', '--help', '-h', '--listTests', '--list-files', '--showConfig', '--init', '--clearCache', 'list', 'init', 'bench']);

/** @param {{file: string, name: string, state: string}[]} tests */
function note(runner, tests) {
  const here = process.cwd();
  const named = (test) => `${path.relative(here, test.file || '').split(path.sep).join('/')}::${test.name.replace(/\s+/g, ' ')}`;
  const ran = tests.filter((test) => test.state !== 'skipped');
  const failed = tests.filter((test) => test.state === 'failed');
  const lines = [`started ${runner}`, `ran ${tests.length} ${failed.length} ${tests.length - ran.length}`];
  const names = (which) => [...new Set(which.map(named))].sort();
  const all = names(ran);
  if (all.reduce((sum, name) => sum + name.length, 0) <= MOST_NAMED) {
    lines.push(...all.map((name) => `test ${name}`), ...names(failed).map((name) => `failed ${name}`));
    lines.push(...names(tests.filter((test) => test.state === 'skipped')).map((name) => `skipped ${name}`));
  }
  try {
    fs.appendFileSync(NOTES, lines.map((line) => `${process.pid} ${line}\n`).join(''), { mode: 0o600 });
  } catch {
    // no record: what the run prints tells how it went
  }
}

const STATES = { pass: 'passed', passed: 'passed', fail: 'failed', failed: 'failed' };

const OURS = Symbol.for('options of the record');

/** Jest's `testResultsProcessor`. */
function ofJest(results) {
  const tests = results.testResults.flatMap((file) =>
    file.testResults.map((test) => ({
      file: file.testFilePath,
      name: [...test.ancestorTitles, test.title].join(' > '),
      state: STATES[test.status] || 'skipped',
    })),
  );
  note('jest', tests);
  return results;
}

/** A reporter of Jest, where the project has a processor of its own. */
class OfJest {
  onRunComplete(contexts, results) {
    ofJest(results);
  }
}

/** A reporter of Vitest; from version 3 on it is told of modules, before of files. */
class OfVitest {
  onTestRunEnd(modules) {
    this.told = true;
    note('vitest', modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({ file: module.moduleId, name: test.fullName, state: STATES[test.result().state] || 'skipped' })),
    ));
  }

  onFinished(files = []) {
    if (this.told) return;
    const inside = (task, titles) =>
      task.tasks
        ? task.tasks.flatMap((each) => inside(each, [...titles, each.name]))
        : [{ name: titles.join(' > '), state: STATES[task.result && task.result.state] || 'skipped' }];
    note('vitest', files.flatMap((file) => inside(file, []).map((test) => ({ ...test, file: file.filepath }))));
  }
}

/** A reporter of Node's own runner: what it is told stays, what it prints is nothing. */
async function* ofNode(events) {
  const tests = [];
  const titles = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      titles.length = data.nesting;
      titles[data.nesting] = data.name;
    }
    if ((type === 'test:pass' || type === 'test:fail') && !(data.details && data.details.type === 'suite')) {
      const isFile = data.nesting === 0 && path.resolve(data.name) === path.resolve(data.file || '');
      const failed = type === 'test:fail' && data.todo === undefined;
      const state = data.skip !== undefined ? 'skipped' : failed ? 'failed' : 'passed';
      const name = [...titles.slice(0, data.nesting), data.name].join(' > ');
      if (!isFile || failed) tests.push({ file: data.file, name, state });
    }
  }
  note('node', tests);
}

/** Mocha's root hooks; a test that is tried again counts once. */
function ofMocha() {
  const ran = new Map();
  process.on('exit', () => ran.size && note('mocha', [...ran.values()]));
  return {
    afterEach() {
      const { file, state } = this.currentTest;
      const name = this.currentTest.titlePath().join(' > ');
      ran.set(`${file}::${name}`, { file, name, state: STATES[state] || 'passed' });
    },
  };
}

function startNode() {
  const { spawnSync } = require('child_process');
  const count = (option) => process.execArgv.filter((word) => word === option || word.startsWith(`${option}=`)).length;
  const [reporters, destinations] = [count('--test-reporter'), count('--test-reporter-destination')];
  const spec = process.stdout.isTTY || Number(process.versions.node.split('.')[0]) >= 23 ? 'spec' : 'tap';
  const given = reporters ? [] : ['--test-reporter', spec];
  if (!destinations && reporters < 2) given.push('--test-reporter-destination', 'stdout');
  const ours = ['--test-reporter', __filename, '--test-reporter-destination', '/dev/null'];
  const files = ASKED.length ? ASKED : process.argv.slice(1);
  const words = [...process.execArgv, ...given, ...ours, ...files];
  const ended = spawnSync(process.execPath, words, { stdio: 'inherit' });
  if (ended.error) return;
  if (ended.signal) process.kill(process.pid, ended.signal);
  process.exit(ended.status);
}

/** Return true if Vitest's configuration names reporters, which an option would replace. */
function hasReporters() {
  const files = fs.readdirSync('.').filter((name) => /^vite(st)?\.config\./.test(name));
  return files.some((name) => /\breporters\b/.test(fs.readFileSync(name, 'utf8')));
}

/** Take this file, and what Python runs at its start, out of what the runner's tests start: those are not runs of the tests. */
function forget() {
  const own = new RegExp(`\\s*--require[ =]"?${__filename.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}"?`);
  const kept = {
    NODE_OPTIONS: (process.env.NODE_OPTIONS || '').replace(own, '').trim(),
    PYTHONPATH: (process.env.PYTHONPATH || '').split(path.delimiter).filter((folder) => folder !== __dirname).join(path.delimiter),
  };
  for (const [name, value] of Object.entries(kept)) {
    if (value) process.env[name] = value;
    else delete process.env[name];
  }
}

/** Return true if a configuration of Jest, a file or in the options, speaks of a word. */
function jestSpeaksOf(word, words) {
  const named = words.flatMap((each, at) => (/^(-c|--config)$/.test(each) ? [words[at + 1]] : /^--config=/.test(each) ? [each.slice(9)] : []));
  const files = fs.readdirSync('.').filter((name) => /^(jest\.config\..*|package\.json)$/.test(name));
  const texts = [...files, ...named].map((file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : file));
  return [...texts, ...words].some((text) => text.includes(word));
}

function start() {
  const words = process.argv.slice(2);
  if (process.execArgv.includes('--test') && !process.execArgv.some((word) => word.startsWith('--watch'))) {
    forget();
    if (process.allowedNodeEnvironmentFlags.has('--test-reporter') && !/--test-reporter/.test(process.env.NODE_OPTIONS || '')) startNode();
    return;
  }
  const runner = path.basename(process.argv[1] || '').replace(/\.m?js$/, '');
  if (!RUNNERS.has(runner)) return; // a program that may start a runner
  forget();
  if (words.some((word) => QUESTIONS.has(word))) return;
  const ours = OPTIONS.includes('stop') ? [runner === 'vitest' ? '--bail=1' : '--bail'] : [];
  if (runner === 'jest' && !jestSpeaksOf('testResultsProcessor', words)) {
    ours.push(`--testResultsProcessor=${__filename}`);
  } else if (runner === 'jest' && !jestSpeaksOf('reporters', words)) {
    ours.push('--reporters=default', `--reporters=${__filename}`);
  } else if (runner === 'vitest' && !hasReporters()) {
    if (!/--reporter\b/.test(words.join(' '))) ours.push('--reporter=default');
    ours.push(`--reporter=${__filename}`);
  } else if (runner.endsWith('mocha')) {
    ours.push(`--require=${__filename}`);
  }
  const end = process.argv.indexOf('--');
  process.argv.splice(end < 0 ? process.argv.length : end, 0, ...ours);
  // Files stand first, where no option can take them for its values
  const files = { jest: ASKED.map((file) => `${file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`), vitest: ASKED }[runner] || [];
  process.argv.splice(words[0] === 'run' ? 3 : 2, 0, ...files);
  ours.push(...files);
  process[OURS] = ours;
  // Jest has read its options by then, and tests that read process.argv find it as it was.
  if (runner === 'jest') process.nextTick(() => (process.argv = process.argv.filter((word) => !ours.includes(word))));
}

if (module.parent && module.parent.id === 'internal/preload') {
  try {
    start();
  } catch {
    // the runner goes on as it is
  }
}
// A runner loads this file once more, by the option that names it, and takes what it needs of the same name.
const told = (option) => [...process.argv, ...(process[OURS] || [])].includes(`--${option}=${__filename}`);
module.exports = told('testResultsProcessor') ? ofJest : told('reporters') ? OfJest : told('reporter') ? OfVitest : told('require') ? { mochaHooks: ofMocha() } : ofNode;
