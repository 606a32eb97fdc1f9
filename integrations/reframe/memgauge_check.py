"""Memory of each node against references, in ReFrame:

    reframe -c memgauge_check.py -r --distribute=idle --performance-report

What memgauge measures and the references of your systems are settings (reframe -S memgauge_check.NAME=VALUE), so that this file stays as it is.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, sanity_function, variable


@rfm.simple_test
class memgauge_check(rfm.RunOnlyRegressionTest):
    # The program on the nodes, and what it measures.
    memgauge = variable(str, value='memgauge')
    arguments = variable(typ.List[str], value=['quick', '--within', '45s'])
    # JSON: {"SYSTEM:PARTITION": {"peak_read_gbs": [412.0, -0.05, null, "GB/s"]}}, as ReFrame's own "reference" has it. Without this file
    # the numbers are reported and nothing is compared.
    references = variable(str, value='memgauge_references.json')

    descr = "Bandwidth and latency of one node's memory"
    valid_systems = ['*']
    valid_prog_environs = ['*']
    num_tasks = 1
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = '10m'
    keep_files = ['result.json']

    @run_after('init')
    def read_references(self):
        self.known = {}
        path = os.path.join(self.prefix, self.references)
        if os.path.exists(path):
            with open(path) as file:
                self.known = json.load(file)
        self.reference = {system: {name: tuple(reference) for name, reference in numbers.items()} for system, numbers in self.known.items()}

    @run_before('run')
    def set_command(self):
        self.executable = self.memgauge
        self.executable_opts = [*self.arguments, '--quiet', '--output', 'result.json']

    def result(self):
        """What memgauge wrote; None where it wrote nothing."""
        path = os.path.join(self.stagedir, 'result.json')
        if not os.path.exists(path):
            return None
        with open(path) as file:
            return json.load(file)

    def referenced(self):
        """The names of the numbers that this system has references for."""
        here = ('*', self.current_system.name, self.current_partition.fullname)
        return sorted({name for system in here for name in self.known.get(system, {})})

    @sanity_function
    def was_measured(self):
        result = self.result()
        if result is None:
            return sn.assert_true(False, 'memgauge left no result: see its output in the stage folder')
        if not result['complete']:
            return sn.assert_true(False, 'the run ended early')
        health = result.get('health') or {'status': 'ok', 'findings': []}
        if health['status'] in ('failure', 'incident', 'could-not-measure'):
            return sn.assert_true(False, health['findings'][0]['message'] if health['findings'] else health['status'])
        if self.known and not self.referenced():
            return sn.assert_true(False, f'{self.references} has no references for {self.current_partition.fullname}')
        # A number that is missing or unreliable would not be compared: it is not one that passed.
        missing = [f"{name}: {(result['summary'].get(name) or {}).get('absent') or 'not in the result'}" for name in self.referenced()
                   if (result['summary'].get(name) or {}).get('value') is None]
        return sn.assert_true(not missing, 'not measured: ' + ', '.join(missing))

    @run_before('performance')
    def set_variables(self):
        units = {'_gbs': 'GB/s', '_ns': 'ns'}
        for name, number in self.result()['summary'].items():
            unit = next((unit for ending, unit in units.items() if name.endswith(ending)), None)
            if unit and number['value'] is not None:
                self.perf_variables[name] = sn.make_performance_function(lambda value=number['value']: value, unit)
