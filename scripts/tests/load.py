"""Import a script, which has no .py suffix, as a module."""

import importlib.machinery
import importlib.util
import pathlib


def script(name):
    path = pathlib.Path(__file__).parent.parent / name
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
