"""The connectors of a cluster: files on HDFS, or on what else the cluster's Hadoop opens, by pyarrow and libhdfs."""

import os
from typing import TYPE_CHECKING, Final

from yupana.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pyarrow.fs import HadoopFileSystem

_NO_SIGNALS: Final = "-Xrs"
"""Tells a Java machine to leave signals to the process it is in, which removes its scratch when it is interrupted."""


def open_hadoop(scheme: str, authority: str) -> "HadoopFileSystem":
    """Open a file system with the connector, the settings and the rights that this machine has of its cluster.

    Parameters
    ----------
    scheme : str
        Such as ``hdfs`` or ``s3a``.
    authority : str
        The name node, or the bucket; empty for the cluster's default.

    Raises
    ------
    ConfigError
        If there is no connector on this machine.
    InputError
        If it cannot open the file system.
    """
    try:
        from pyarrow.fs import HadoopFileSystem  # noqa: PLC0415
    except ImportError:
        raise ConfigError(f"DATA {scheme}://... needs pyarrow; install yupana[s3]") from None
    options = os.environ.get("LIBHDFS_OPTS", "").split()
    if _NO_SIGNALS not in options:
        os.environ["LIBHDFS_OPTS"] = " ".join((*options, _NO_SIGNALS))
    named = {"fs.defaultFS": f"{scheme}://{authority}"} if authority else {}
    try:
        # Of a host pyarrow makes a name node, whatever scheme it has; the default of a cluster may be any.
        return HadoopFileSystem("default", 0, extra_conf=named)
    except OSError as error:
        if "load lib" in str(error):
            raise ConfigError(
                f"DATA {scheme}://...: only a connector of a cluster reads this, and there is none on this machine "
                "(Java, HADOOP_HOME with lib/native/libhdfs.so, CLASSPATH as `hadoop classpath --glob` prints it); "
                "give a local folder, or s3://BUCKET/PREFIX"
            ) from None
        raise InputError(
            f"{scheme}://{authority}: the cluster's connector cannot open it; look at CLASSPATH (as `hadoop classpath "
            "--glob` prints it), HADOOP_CONF_DIR, the name, and your ticket or rights"
        ) from None
