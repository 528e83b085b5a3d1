"""The engine of the queue, over DBOS: durable executions of builds, each claimed by one worker.

The only module that knows DBOS. An execution hands a module with its fencing number to this process's crew, and waits
for the ending. All that must survive is in the checkpoint: a build that is taken over gets a new execution.
"""

from __future__ import annotations

import logging
import os
import queue
import uuid
from concurrent.futures import Future

from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions

from lopen import __version__
from lopen.queue.shared import Placed, driver_address

WORKFLOW = "lopen.build"
SCHEMA = "lopen_engine"  # of its tables in Postgres
POLL_S = 1.0  # each takes the engine some milliseconds


class Executions:
    """Puts executions of builds into a project's queue, without executing any."""

    def __init__(self, url: str, project: str) -> None:
        """Connect, and make the engine's tables if there are none."""
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        DBOS.migrate(driver_address(url), schema=SCHEMA)
        self._queue = f"lopen-{project}"
        self._client = DBOSClient(
            system_database_url=driver_address(url),
            dbos_system_schema=SCHEMA,
            serializer=DBOSPortableJSONSerializer(),
            application_name="lopen",
        )

    def add(self, placed: Placed) -> None:
        """Enqueue a queued order; a lower priority goes first."""
        options = EnqueueOptions(
            workflow_name=WORKFLOW,
            queue_name=self._queue,
            workflow_id=self.id(placed),
            app_version=__version__,
            priority=placed.priority,
        )
        self._client.enqueue(options, placed.order.module, placed.fence)

    def id(self, placed: Placed) -> str:
        """Return the id of the order's execution, which its fencing number gives it."""
        return f"{self._queue}-{placed.order.module}-{placed.fence}"

    def cancel(self, execution: str) -> None:
        """Take an execution out of the queue; one that a dead worker holds is nobody's any more."""
        self._client.cancel_workflow(execution)

    def open(self) -> dict[str, str]:
        """Return the executions that have not ended, each with the version of lopen that it waits for, or "" if claimed."""
        found = self._client.list_workflows(
            queue_name=self._queue, status=["ENQUEUED", "PENDING"], load_input=False, load_output=False
        )
        return {e.workflow_id: str(e.app_version) if e.status == "ENQUEUED" else "" for e in found}

    def close(self) -> None:
        """Close the connections."""
        self._client.destroy()


class Engine:
    """Claims executions for this process, `jobs` at a time, and hands each over as a module with its ending to be set."""

    def __init__(self, url: str, project: str, jobs: int) -> None:
        """Begin to claim; the tables must be there."""
        self.claimed: queue.SimpleQueue[tuple[str, int, Future[str]]] = queue.SimpleQueue()
        claimed, name = self.claimed, f"lopen-{project}"
        for variable in ("DBOS__APPVERSION", "DBOS__VMID"):
            os.environ.pop(variable, None)
        config = DBOSConfig(
            name="lopen",
            system_database_url=driver_address(url),
            dbos_system_schema=SCHEMA,
            application_version=__version__,
            executor_id=uuid.uuid4().hex,  # nobody recovers by it: leases tell who is dead
            serializer=DBOSPortableJSONSerializer(),
            log_level="CRITICAL",
            sys_db_pool_size=4,
            notification_coalesce_sec=POLL_S,  # nothing is notified; by default it looks a hundred times a second
            run_migrations=False,
        )
        self._dbos = DBOS(config=config)

        @DBOS.workflow(name=WORKFLOW)
        def build(module: str, fence: int) -> str:
            ending: Future[str] = Future()
            claimed.put((module, fence, ending))
            return ending.result()

        assert build is not None  # the engine finds it by its name
        DBOS.listen_queues([name])
        DBOS.launch()
        DBOS.register_queue(
            name, worker_concurrency=jobs, polling_interval_sec=POLL_S, on_conflict="always_update"
        )

    def close(self) -> None:
        """Claim nothing more; every ending must be set. A database that is away is not waited for."""
        # DBOS asks such a database for ever and has no setting against it; a test ends a worker without its database.
        vars(self._dbos._sys_db)["_retry_connection_errors"] = False
        DBOS.destroy()
